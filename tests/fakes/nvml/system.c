// Functions of the driver as a whole, and of finding a device.
#include "state.h"

#include <string.h>

static nvmlReturn_t give_text(const char *text, char *to, unsigned length) {
    NEED(to);
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) {
    ENTER();
    start();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    ENTER();
    (void)flags;
    start();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    ENTER();
    stop();
    return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t error) {
    const char *function __attribute__((cleanup(leave))) = __func__;
    enter(function);
    return error_text(error);
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    ENTER();
    return give_text(script.driver, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    ENTER();
    return give_text(script.nvml, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    ENTER();
    NEED(version);
    *version = script.cuda;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER();
    NEED(version);
    *version = script.cuda;
    return NVML_SUCCESS;
}

// The number of devices with this parent, and the device at `index`.
static unsigned count_below(int parent, unsigned index, const struct device **found) {
    unsigned count = 0;
    *found = NULL;
    for (unsigned i = 0; i < script.device_count; i++)
        if (script.devices[i].parent == parent && count++ == index) *found = &script.devices[i];
    return count;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER();
    NEED(count);
    const struct device *found;
    *count = count_below(-1, 0, &found);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *handle) {
    ENTER();
    const struct device *found;
    count_below(-1, index, &found);
    NEED(found && handle);
    *handle = handle_of(found);
    return find_device(*handle, &found);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle) {
    ENTER();
    NEED(uuid && handle);
    for (unsigned i = 0; i < script.device_count; i++) {
        const struct device *device = &script.devices[i];
        if (strcmp(device->uuid, uuid)) continue;
        *handle = handle_of(device);
        return find_device(*handle, &device);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned length) {
    ENTER_DEVICE(handle);
    return give_text(device->uuid, uuid, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned *index) {
    ENTER_DEVICE(handle);
    NEED(index);
    *index = 0;
    for (const struct device *before = script.devices; before < device; before++) *index += before->parent == device->parent;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned length) {
    ENTER_DEVICE(handle);
    return give_text(board_of(device)->name, name, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current, unsigned *pending) {
    ENTER_DEVICE(handle);
    NEED(current && pending);
    double mode = device->value[mig];
    if (!(mode >= 0)) return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = (unsigned)mode;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *count) {
    ENTER_DEVICE(handle);
    NEED(count);
    *count = device->value[mig] == 1 ? 7 : 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *mig_handle) {
    ENTER_DEVICE(handle);
    NEED(mig_handle && device->parent < 0);
    if (device->value[mig] != 1) return NVML_ERROR_NOT_SUPPORTED;
    const struct device *found;
    count_below((int)(device - script.devices), index, &found);
    if (!found) return NVML_ERROR_NOT_FOUND;
    *mig_handle = handle_of(found);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *board) {
    ENTER_DEVICE(handle);
    NEED(board && device->parent >= 0);
    *board = handle_of(board_of(device));
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *is_mig) {
    ENTER_DEVICE(handle);
    NEED(is_mig);
    *is_mig = device->parent >= 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned *id) {
    ENTER_DEVICE(handle);
    NEED(id && device->parent >= 0);
    *id = (unsigned)device->value[gpu_instance];
    return NVML_SUCCESS;
}
