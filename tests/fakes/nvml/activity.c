// Functions of how busy a device is, and of the processes that use it.
#include "state.h"

#include <math.h>
#include <string.h>

enum { RING_SAMPLES = 120 };
static const unsigned long long RING_US = 120000000, STALE_US = 600000000;

// Busy time is unknown for a MIG device and for a GPU with MIG on.
static double busy(const struct device *device, enum key key) { return device->value[mig] == 1 ? NAN : device->value[key]; }

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *rates) {
    ENTER_DEVICE(handle);
    NEED(rates);
    double gpu = busy(device, busy_percent), memory = busy(device, memory_busy_percent);
    if (isnan(gpu) || isnan(memory)) return NVML_ERROR_NOT_SUPPORTED;
    *rates = (nvmlUtilization_t){(unsigned)gpu, (unsigned)memory};
    return NVML_SUCCESS;
}

// Without an array: how many samples the ring may hold. With one: those newer than `last_seen`, the oldest first.
EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t handle, unsigned type, unsigned long long last_seen, unsigned *value_type,
                                         unsigned *count, nvmlSample_t *samples) {
    ENTER_DEVICE(handle);
    NEED(value_type && count);
    double value = type == NVML_GPU_UTILIZATION_SAMPLES      ? busy(device, busy_percent)
                   : type == NVML_MEMORY_UTILIZATION_SAMPLES ? busy(device, memory_busy_percent)
                                                             : NAN;
    unsigned long long period_us = (unsigned long long)(device->value[sample_period_ms] * 1000);
    if (isnan(value) || !period_us) return NVML_ERROR_NOT_SUPPORTED;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!samples) {
        *count = RING_SAMPLES;
        return NVML_SUCCESS;
    }
    unsigned long long now_us = (unsigned long long)(unix_s() * 1e6), written_us = (unsigned long long)(written_s * 1e6);
    unsigned long long newest = device->samples == STALE ? written_us - STALE_US : now_us;
    newest -= newest % period_us;
    unsigned long long newer = newest > last_seen ? (newest - last_seen - 1) / period_us + 1 : 0, kept = RING_US / period_us;
    if (newer > kept) newer = kept;
    if (newer > RING_SAMPLES) newer = RING_SAMPLES;
    if (!newer) return NVML_ERROR_NOT_FOUND;
    if (*count < newer) return NVML_ERROR_INSUFFICIENT_SIZE;
    *count = (unsigned)newer;
    for (unsigned i = 0; i < newer; i++) {
        samples[i].timeStamp = newest - (newer - 1 - i) * period_us;
        samples[i].sampleValue.ullVal = 0;
        samples[i].sampleValue.uiVal = device->samples == GARBAGE ? (unsigned)NVML_VALUE_NOT_AVAILABLE : (unsigned)value;
    }
    return NVML_SUCCESS;
}

// The processes of a GPU, or of a MIG device by its GPU instance.
static unsigned list_processes(const struct device *device, const struct process *found[MAX_PROCESSES]) {
    const struct device *board = board_of(device);
    unsigned count = 0;
    for (unsigned i = 0; i < board->process_count; i++)
        if (device->parent < 0 || board->processes[i].gpu_instance == device->value[gpu_instance]) found[count++] = &board->processes[i];
    return count;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_t *processes) {
    ENTER_DEVICE(handle);
    NEED(count && (processes || !*count));
    const struct process *found[MAX_PROCESSES];
    unsigned room = *count;
    *count = list_processes(device, found);
    if (room < *count) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        processes[i] = (nvmlProcessInfo_t){found[i]->pid, found[i]->used_bytes, found[i]->gpu_instance, (unsigned)NVML_VALUE_NOT_AVAILABLE};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_t *processes) {
    ENTER_DEVICE(handle);
    (void)processes;
    NEED(count);
    *count = 0;
    return NVML_SUCCESS;
}

#ifndef OLD_DRIVER
// Each process has the whole device's utilization.
EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t *info) {
    ENTER_DEVICE(handle);
    NEED(info);
    if (info->version != STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    double gpu = busy(device, busy_percent), memory = busy(device, memory_busy_percent);
    if (isnan(gpu) || isnan(memory)) return NVML_ERROR_NOT_SUPPORTED;
    const struct process *found[MAX_PROCESSES];
    unsigned room = info->processSamplesCount, count = list_processes(device, found);
    unsigned long long now_us = (unsigned long long)(unix_s() * 1e6);
    if (!count || info->lastSeenTimeStamp >= now_us) return NVML_ERROR_NOT_FOUND;
    info->processSamplesCount = count;
    if (room < count) return NVML_ERROR_INSUFFICIENT_SIZE;
    NEED(info->procUtilArray);
    for (unsigned i = 0; i < count; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = now_us, .pid = found[i]->pid, .smUtil = (unsigned)gpu, .memUtil = (unsigned)memory};
    return NVML_SUCCESS;
}
#endif
