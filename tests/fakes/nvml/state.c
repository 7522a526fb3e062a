// The script, handles and counters of one process.
#include "state.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_HANDLES = 256, MAX_FUNCTIONS = 128 };

struct script script;
double written_s;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat seen;
static double counted_from_s;  // monotonic; the handles have the counters up to this time
static unsigned starts;
static struct nvmlDevice_st handles[MAX_HANDLES];
static struct {
    char function[TEXT];
    unsigned calls;
} counts[MAX_FUNCTIONS];

static double clock_s(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double unix_s(void) { return clock_s(CLOCK_REALTIME); }
double monotonic_s(void) { return clock_s(CLOCK_MONOTONIC); }

static _Noreturn void fail(const char *what, const char *more) {
    fprintf(stderr, "fake driver: %s%s\n", what, more);
    abort();
}

static nvmlDevice_t handle_with(const char *uuid) {
    for (int i = 0; i < MAX_HANDLES; i++) {
        if (!*handles[i].uuid) strcpy(handles[i].uuid, uuid);
        if (!strcmp(handles[i].uuid, uuid)) return &handles[i];
    }
    fail("too many devices over all scripts: ", uuid);
}

nvmlDevice_t handle_of(const struct device *device) { return handle_with(device->uuid); }

const struct device *board_of(const struct device *device) {
    return device->parent < 0 ? device : &script.devices[device->parent];
}

nvmlReturn_t find_device(nvmlDevice_t handle, const struct device **device) {
    if (handle < handles || handle >= handles + MAX_HANDLES || !*handle->uuid) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < script.device_count; i++)
        if (!strcmp(script.devices[i].uuid, handle->uuid)) {
            *device = &script.devices[i];
            return board_of(*device)->value[lost] > 0 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        }
    return NVML_ERROR_GPU_IS_LOST;  // it is not in the current script
}

static double energy_grown_mj(const struct device *device, double elapsed_s) { return device->value[power_w] * 1000 * elapsed_s; }
static double grown_ns(const struct device *device, enum key share, double elapsed_s) { return device->value[share] * 1e9 * elapsed_s; }

double energy_mj(nvmlDevice_t handle, const struct device *device) {
    double step_s = device->value[energy_step_ms] / 1000, elapsed_s = monotonic_s() - counted_from_s;
    if (step_s > 0) elapsed_s = floor(elapsed_s / step_s) * step_s;
    return device->value[energy_base_mj] + handle->energy_mj + energy_grown_mj(device, elapsed_s);
}

double power_throttle_ns(nvmlDevice_t handle, const struct device *device) {
    return handle->power_throttle_ns + grown_ns(device, power_throttle_share, monotonic_s() - counted_from_s);
}

double sync_boost_ns(nvmlDevice_t handle, const struct device *device) {
    return handle->sync_boost_ns + grown_ns(device, sync_boost_share, monotonic_s() - counted_from_s);
}

static double or_zero(double value) { return isnan(value) ? 0 : value; }

// Adds to each counter its growth under the script that ends.
static void add_growth(double elapsed_s) {
    for (unsigned i = 0; i < script.device_count; i++) {
        const struct device *device = &script.devices[i];
        nvmlDevice_t handle = handle_of(device);
        handle->energy_mj += or_zero(energy_grown_mj(device, elapsed_s));
        handle->power_throttle_ns += or_zero(grown_ns(device, power_throttle_share, elapsed_s));
        handle->sync_boost_ns += or_zero(grown_ns(device, sync_boost_share, elapsed_s));
    }
}

static void follow_script(void) {
    const char *path = getenv("FAKE_NVML");
    if (!path) fail("FAKE_NVML does not name a script", "");
    struct stat now;
    if (stat(path, &now)) fail("no script ", path);
    int first = !seen.st_ino;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size && now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    seen = now;
    written_s = (double)now.st_mtim.tv_sec + (double)now.st_mtim.tv_nsec * 1e-9;
    double now_s = monotonic_s();
    add_growth(now_s - counted_from_s);
    // From when the first script was written, so that later processes see the same counter.
    counted_from_s = first ? now_s - fmax(0, unix_s() - written_s) : now_s;
    read_script(path, &script);
}

static void note(const char *function) {
    if (!*script.calls_file) return;
    FILE *file = fopen(script.calls_file, "ae");
    if (!file) fail("cannot write ", script.calls_file);
    fprintf(file, "%s\n", function);
    fclose(file);
}

static unsigned count(const char *function) {
    for (int i = 0; i < MAX_FUNCTIONS; i++) {
        if (!*counts[i].function) strcpy(counts[i].function, function);
        if (!strcmp(counts[i].function, function)) return ++counts[i].calls;
    }
    fail("too many functions: ", function);
}

nvmlReturn_t enter(const char *function) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t answer = NVML_SUCCESS;
    follow_script();
    note(function);
    unsigned calls = count(function);
    for (unsigned i = 0; i < script.refusal_count; i++) {
        const struct refusal *refusal = &script.refusals[i];
        if (!strcmp(refusal->function, function) && calls >= refusal->from_call) answer = refusal->error;
    }
    int needs_start = strncmp(function, "nvmlInit", 8) && strcmp(function, "nvmlErrorString");
    return answer == NVML_SUCCESS && needs_start && !starts ? NVML_ERROR_UNINITIALIZED : answer;
}

void leave(const char **function) {
    (void)function;
    pthread_mutex_unlock(&lock);
}

void start(void) { starts++; }
void stop(void) { starts--; }
