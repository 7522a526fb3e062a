// A script: the answers of the driver and of each device.
#pragma once
#include "layouts.h"

enum { MAX_DEVICES = 32, MAX_PROCESSES = 32, MAX_METRICS = 64, MAX_REFUSALS = 32, TEXT = 96 };

// The lines of a device that hold one number.
#define KEYS(KEY)                                                                                             \
    KEY(memory_total_mib) KEY(memory_used_mib) KEY(memory_reserved_mib)                                       \
    KEY(power_w) KEY(power_limit_w) KEY(energy_base_mj) KEY(energy_step_ms)                                   \
    KEY(sm_clock_mhz) KEY(memory_clock_mhz) KEY(max_sm_clock_mhz) KEY(max_memory_clock_mhz)                   \
    KEY(temperature_c) KEY(temperature_limit_c) KEY(event_reasons)                                            \
    KEY(power_throttle_share) KEY(sync_boost_share)                                                           \
    KEY(busy_percent) KEY(memory_busy_percent) KEY(sample_period_ms)                                          \
    KEY(gpm) KEY(ecc) KEY(ecc_errors) KEY(persistence) KEY(compute_mode) KEY(mig) KEY(gpu_instance) KEY(lost) \
    KEY(pcie_generation) KEY(pcie_width)

#define AS_ENUMERATOR(name) name,
enum key { KEYS(AS_ENUMERATOR) KEY_COUNT };

struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
};

struct metric {
    unsigned id;
    double value;
};

struct device {
    char uuid[TEXT], name[TEXT];
    int parent;  // a MIG device: the index of its GPU; else -1
    double value[KEY_COUNT];  // NaN: not supported
    enum { FRESH, STALE, GARBAGE } samples;
    struct process processes[MAX_PROCESSES];
    struct metric metrics[MAX_METRICS];
    unsigned process_count, metric_count;
};

struct refusal {
    char function[TEXT];
    nvmlReturn_t error;
    unsigned from_call;
};

struct script {
    char driver[TEXT], nvml[TEXT];
    int cuda;
    char calls_file[4096];
    struct device devices[MAX_DEVICES];  // a GPU, then its MIG devices, then the next GPU
    struct refusal refusals[MAX_REFUSALS];
    unsigned device_count, refusal_count;
};

// Reads a script; an invalid line ends the process, so that no test passes because of a typo.
void read_script(const char *path, struct script *script);

// The return code NVML_ERROR_`name`, or -1.
int error_called(const char *name);

const char *error_text(nvmlReturn_t error);
