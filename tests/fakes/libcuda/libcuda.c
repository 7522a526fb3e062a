/* A libcuda.so.1 that computes nothing: enough for Triton's launcher. It notes what it is told, as
 * lines of JSON, and judges nothing: __init__.py does. cuda.h is Triton's.
 *
 * Tests call the functions that begin with fake_. */
#include "cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARAMETERS 128

static char noted[1 << 20];
static size_t used;
static int sizes[MOST_PARAMETERS], size_count; /* of the parameters of the next launch */
static int major = 9, shared_bytes;            /* of a block, if it asks for them */
static int launches_left = -1;                 /* the last one breaks the context; -1: none */

struct function { int dynamic_bytes; };

const char *fake_noted(void) { return noted; }
void fake_gpu(int of, int shared) { major = of; shared_bytes = shared; }
void fake_forget(void) { used = 0; noted[0] = 0; }
void fake_break_in(int launches) { launches_left = launches; }
void fake_parameters(int count, const int *bytes) {
  size_count = count < MOST_PARAMETERS ? count : MOST_PARAMETERS;
  memcpy(sizes, bytes, size_count * sizeof *bytes);
}

#define NOTE(...) (used += snprintf(noted + used, sizeof noted - used, __VA_ARGS__))

static void note_list(const char *name, const unsigned long long *values, unsigned count) {
  NOTE(", \"%s\": [", name);
  for (unsigned i = 0; i < count; i++) NOTE("%s%llu", i ? ", " : "", values[i]);
  NOTE("]");
}

static CUresult state(void) { return launches_left == 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; }

CUresult cuInit(unsigned flags) { (void)flags; return state(); }
CUresult cuDriverGetVersion(int *version) { *version = 13000; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *count) { *count = 1; return state(); }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return state(); }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = (CUcontext)0x1000; return state(); }
CUresult cuCtxSetCurrent(CUcontext context) { (void)context; return state(); }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return state(); }
CUresult cuCtxGetLimit(size_t *size, CUlimit limit) { (void)limit; *size = 1 << 20; return state(); }
CUresult cuCtxSetLimit(CUlimit limit, size_t size) { (void)limit; (void)size; return state(); }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device; *context = (CUcontext)0x1000; return state();
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = major; break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = shared_bytes; break;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
  default: *value = 1000000;
  }
  return state();
}
CUresult cuGetErrorString(CUresult code, const char **text) {
  *text = code == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "fake";
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  (void)attribute; *(CUdeviceptr *)value = pointer; return state();
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream; *status = CU_STREAM_CAPTURE_STATUS_NONE; return state();
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  (void)image; *module = (CUmodule)0x2000; return state();
}
CUresult cuModuleUnload(CUmodule module) { (void)module; return state(); }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  (void)module; (void)name;
  *function = (CUfunction)calloc(1, sizeof(struct function));
  return state();
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  (void)function; *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
  return state();
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE; /* as CUDA 13.0, which lacks what Triton 3.9 tries first */
  ((struct function *)function)->dynamic_bytes = value;
  return state();
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  (void)function; (void)config; return state();
}
CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config) {
  (void)function; (void)config; *count = 1; return state();
}

/* The map is filled with its own number, by which a launch finds it again. */
CUresult cuTensorMapEncodeTiled(
    CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
    const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
    const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  static unsigned long long number;
  unsigned long long values[5];
  (void)promotion; (void)fill;
  number++;
  memset(map, 0, sizeof *map);
  memcpy(map, &number, sizeof number);
  NOTE("{\"map\": %llu, \"aligned\": %d, \"type\": %d, \"rank\": %u, \"address\": %llu",
       number, (size_t)map % 64 == 0, type, rank, (unsigned long long)(size_t)address);
  NOTE(", \"interleave\": %d, \"swizzle\": %d", interleave, swizzle);
  for (unsigned i = 0; i < rank; i++) values[i] = dimensions[i];
  note_list("dimensions", values, rank);
  for (unsigned i = 0; i + 1 < rank; i++) values[i] = strides[i];
  note_list("strides", values, rank - 1);
  for (unsigned i = 0; i < rank; i++) values[i] = box[i];
  note_list("box", values, rank);
  for (unsigned i = 0; i < rank; i++) values[i] = steps[i];
  note_list("steps", values, rank);
  NOTE("}\n");
  return state();
}

/* Parameters are read in the sizes that the test gave: 128 bytes are a map, noted by its number. */
CUresult cuLaunchKernelEx(
    const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  unsigned long long values[MOST_PARAMETERS];
  (void)extra;
  if (launches_left > 0) launches_left--;
  if (state()) return state();
  for (int i = 0; i < size_count; i++) {
    values[i] = 0;
    memcpy(values + i, parameters[i], sizes[i] > 8 ? 8 : sizes[i]);
  }
  NOTE("{\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, \"dynamic\": %d",
       config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
       config->blockDimZ, config->sharedMemBytes, ((struct function *)function)->dynamic_bytes);
  note_list("parameters", values, size_count);
  NOTE("}\n");
  return CUDA_SUCCESS;
}
