// Functions of one device: memory, power, clocks, temperature, state.
#include "state.h"

#include <math.h>

#define MIB 1048576.0

static nvmlReturn_t give(double value, unsigned *out) {
    NEED(out);
    if (isnan(value)) return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned)llround(value);
    return NVML_SUCCESS;
}

static nvmlReturn_t give_long(double value, unsigned long long *out) {
    NEED(out);
    if (isnan(value)) return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned long long)value;
    return NVML_SUCCESS;
}

// A function that returns one number of the script, times `scale`.
#define NUMBER(name, key, scale)                               \
    EXPORT nvmlReturn_t name(nvmlDevice_t handle, unsigned *out) { \
        ENTER_DEVICE(handle);                                  \
        return give(device->value[key] * (scale), out);        \
    }

NUMBER(nvmlDeviceGetPowerUsage, power_w, 1000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, power_limit_w, 1000)
NUMBER(nvmlDeviceGetPersistenceMode, persistence, 1)
NUMBER(nvmlDeviceGetComputeMode, compute_mode, 1)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation, 1)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, pcie_width, 1)

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory) {
    ENTER_DEVICE(handle);
    NEED(memory);
    // The first version of the struct counts the driver's reserve as used.
    double used_mib = device->value[memory_used_mib] + device->value[memory_reserved_mib], total_mib = device->value[memory_total_mib];
    if (isnan(total_mib - used_mib)) return NVML_ERROR_NOT_SUPPORTED;
    memory->total = (unsigned long long)(total_mib * MIB);
    memory->used = (unsigned long long)(used_mib * MIB);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory) {
    ENTER_DEVICE(handle);
    NEED(memory);
    if (memory->version != STRUCT_VERSION(nvmlMemory_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    double used_mib = device->value[memory_used_mib], total_mib = device->value[memory_total_mib];
    double reserved_mib = device->value[memory_reserved_mib];
    if (isnan(total_mib - used_mib - reserved_mib)) return NVML_ERROR_NOT_SUPPORTED;
    memory->total = (unsigned long long)(total_mib * MIB);
    memory->used = (unsigned long long)(used_mib * MIB);
    memory->reserved = (unsigned long long)(reserved_mib * MIB);
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle, unsigned long long *energy) {
    ENTER_DEVICE(handle);
    return give_long(energy_mj(handle, device), energy);
}

static void fill_field(nvmlDevice_t handle, const struct device *device, nvmlFieldValue_t *field) {
    field->timestamp = (long long)(unix_s() * 1e6);
    field->latencyUsec = 0;
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    double value = NAN;
    switch (field->fieldId) {
        case NVML_FI_DEV_PERF_POLICY_POWER: value = power_throttle_ns(handle, device); break;
        case NVML_FI_DEV_PERF_POLICY_SYNC_BOOST: value = sync_boost_ns(handle, device); break;
        case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION: value = energy_mj(handle, device); break;
        case NVML_FI_DEV_POWER_AVERAGE:
        case NVML_FI_DEV_POWER_INSTANT:
            field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
            field->nvmlReturn = give(device->value[power_w] * 1000, &field->value.uiVal);
            return;
    }
    field->nvmlReturn = give_long(value, &field->value.ullVal);
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *fields) {
    ENTER_DEVICE(handle);
    NEED(fields && count > 0);
    for (int i = 0; i < count; i++) fill_field(handle, device, &fields[i]);
    return NVML_SUCCESS;
}

static nvmlReturn_t give_clock(const struct device *device, unsigned type, enum key sm, enum key memory, unsigned *out) {
    switch (type) {
        case 0:  // graphics
        case 1: return give(device->value[sm], out);
        case 2: return give(device->value[memory], out);
        case 3: return NVML_ERROR_NOT_SUPPORTED;  // video
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned type, unsigned *mhz) {
    ENTER_DEVICE(handle);
    return give_clock(device, type, sm_clock_mhz, memory_clock_mhz, mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, unsigned type, unsigned *mhz) {
    ENTER_DEVICE(handle);
    return give_clock(device, type, max_sm_clock_mhz, max_memory_clock_mhz, mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, unsigned sensor, unsigned *celsius) {
    ENTER_DEVICE(handle);
    NEED(sensor == 0);
    return give(device->value[temperature_c], celsius);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, unsigned threshold, unsigned *celsius) {
    ENTER_DEVICE(handle);
    enum { SLOWDOWN = 1, COUNT = 8 };
    NEED(threshold < COUNT);
    return give(threshold == SLOWDOWN ? device->value[temperature_limit_c] : NAN, celsius);
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle, unsigned long long *reasons) {
    ENTER_DEVICE(handle);
    return give_long(device->value[event_reasons], reasons);
}

#ifndef OLD_DRIVER
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons) {
    ENTER_DEVICE(handle);
    return give_long(device->value[event_reasons], reasons);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_v1_t *temperature) {
    ENTER_DEVICE(handle);
    NEED(temperature);
    if (temperature->version != STRUCT_VERSION(nvmlTemperature_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NEED(temperature->sensorType == 0);
    unsigned celsius = 0;
    nvmlReturn_t answer = give(device->value[temperature_c], &celsius);
    temperature->temperature = (int)celsius;
    return answer;
}
#endif

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending) {
    ENTER_DEVICE(handle);
    NEED(current && pending);
    nvmlReturn_t answer = give(device->value[ecc], current);
    if (answer == NVML_SUCCESS) *pending = *current;
    return answer;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned kind, unsigned counter, unsigned long long *count) {
    ENTER_DEVICE(handle);
    NEED(kind < 2 && counter < 2);
    return give_long(device->value[ecc] == 1 ? device->value[ecc_errors] : NAN, count);
}
