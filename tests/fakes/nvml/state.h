// The state of a process: the current script, handles, and counters that only grow.
#pragma once
#include "script.h"

#define EXPORT __attribute__((visibility("default")))

struct nvmlDevice_st {
    char uuid[TEXT];
    double energy_mj, power_throttle_ns, sync_boost_ns;  // from earlier scripts
};

extern struct script script;
extern double written_s;  // when the current script was written, seconds since 1970

// Takes the lock, rereads the script if it changed, logs the call, and returns whether it is refused.
nvmlReturn_t enter(const char *function);
void leave(const char **function);

void start(void);
void stop(void);

double unix_s(void);
double monotonic_s(void);

// A device keeps its handle in new scripts.
nvmlDevice_t handle_of(const struct device *device);
nvmlReturn_t find_device(nvmlDevice_t handle, const struct device **device);

// The GPU of a MIG device, or the GPU itself.
const struct device *board_of(const struct device *device);

// The counters now; NaN if the script does not say how they grow.
double energy_mj(nvmlDevice_t handle, const struct device *device);
double power_throttle_ns(nvmlDevice_t handle, const struct device *device);
double sync_boost_ns(nvmlDevice_t handle, const struct device *device);

#define ENTER()                                                           \
    __attribute__((cleanup(leave))) const char *function_name = __func__; \
    do {                                                                  \
        nvmlReturn_t refused = enter(function_name);                      \
        if (refused) return refused;                                      \
    } while (0)

#define ENTER_DEVICE(handle)                                \
    ENTER();                                                \
    const struct device *device;                            \
    do {                                                    \
        nvmlReturn_t missing = find_device(handle, &device); \
        if (missing) return missing;                        \
    } while (0)

#define NEED(condition) \
    if (!(condition)) return NVML_ERROR_INVALID_ARGUMENT
