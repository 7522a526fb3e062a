// Hardware counters between two samples. Drivers before Hopper lack these functions.
#ifndef OLD_DRIVER
#include "state.h"

#include <stdlib.h>

static const double SHORTEST_S = 0.1;

struct nvmlGpmSample_st {
    nvmlDevice_t handle;  // NULL until the sample is taken
    double taken_s;       // monotonic
};

static nvmlReturn_t take(const struct device *device, nvmlGpmSample_t sample) {
    NEED(sample);
    if (board_of(device)->value[gpm] != 1) return NVML_ERROR_NOT_SUPPORTED;
    *sample = (struct nvmlGpmSample_st){handle_of(device), monotonic_s()};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *support) {
    ENTER_DEVICE(handle);
    NEED(support);
    if (support->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = board_of(device)->value[gpm] == 1;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    ENTER();
    NEED(sample);
    *sample = calloc(1, sizeof **sample);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    ENTER();
    NEED(sample);
    free(sample);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t handle, nvmlGpmSample_t sample) {
    ENTER_DEVICE(handle);
    return take(device, sample);
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t handle, unsigned instance, nvmlGpmSample_t sample) {
    ENTER_DEVICE(handle);
    for (unsigned i = 0; i < script.device_count; i++) {
        const struct device *part = &script.devices[i];
        if (part->parent >= 0 && board_of(part) == device && part->value[gpu_instance] == instance) return take(part, sample);
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

static void fill(const struct device *board, nvmlGpmMetric_t *metric) {
    metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; i < board->metric_count; i++)
        if (board->metrics[i].id == metric->metricId) {
            metric->nvmlReturn = NVML_SUCCESS;
            metric->value = board->metrics[i].value;
        }
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *request) {
    ENTER();
    NEED(request);
    if (request->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NEED(request->numMetrics && request->sample1 && request->sample2);
    NEED(request->sample1->handle && request->sample1->handle == request->sample2->handle);
    NEED(request->sample2->taken_s - request->sample1->taken_s >= SHORTEST_S);
    const struct device *device;
    nvmlReturn_t missing = find_device(request->sample1->handle, &device);
    if (missing) return missing;
    for (unsigned i = 0; i < request->numMetrics; i++) fill(board_of(device), &request->metrics[i]);
    return NVML_SUCCESS;
}
#endif
