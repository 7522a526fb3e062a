// Reads the script with the driver's answers; README.md has its lines.
#include "script.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB 1048576.0

#define AS_NAME(name) #name,
static const char *const KEY_NAMES[] = {KEYS(AS_NAME)};

static const struct {
    nvmlReturn_t code;
    const char *name, *text;
} ERRORS[] = {
    {NVML_SUCCESS, "SUCCESS", "Success"},
    {NVML_ERROR_UNINITIALIZED, "UNINITIALIZED", "Uninitialized"},
    {NVML_ERROR_INVALID_ARGUMENT, "INVALID_ARGUMENT", "Invalid Argument"},
    {NVML_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED", "Not Supported"},
    {NVML_ERROR_NO_PERMISSION, "NO_PERMISSION", "Insufficient Permissions"},
    {NVML_ERROR_NOT_FOUND, "NOT_FOUND", "Not Found"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "INSUFFICIENT_SIZE", "Insufficient Size"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "DRIVER_NOT_LOADED", "Driver Not Loaded"},
    {NVML_ERROR_FUNCTION_NOT_FOUND, "FUNCTION_NOT_FOUND", "Function Not Found"},
    {NVML_ERROR_GPU_IS_LOST, "GPU_IS_LOST", "GPU is lost"},
    {NVML_ERROR_MEMORY, "MEMORY", "Insufficient Memory"},
    {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "ARGUMENT_VERSION_MISMATCH", "Argument version mismatch"},
    {NVML_ERROR_UNKNOWN, "UNKNOWN", "Unknown Error"},
};
#define ERROR_COUNT (sizeof ERRORS / sizeof *ERRORS)

int error_called(const char *name) {
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (!strcmp(ERRORS[i].name, name)) return (int)ERRORS[i].code;
    return -1;
}

const char *error_text(nvmlReturn_t error) {
    for (size_t i = 0; i < ERROR_COUNT; i++)
        if (ERRORS[i].code == error) return ERRORS[i].text;
    return "Unknown Error";
}

// The current line, for the message of `fail`.
static const char *file_name;
static int line_number;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake driver: %s:%d: ", file_name, line_number);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

static void copy(char *to, size_t size, const char *from) {
    if (!*from) fail("a value is missing");
    if (strlen(from) >= size) fail("'%s' is longer than %zu characters", from, size - 1);
    strcpy(to, from);
}

static double number(const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno) fail("'%s' is not a number", text);
    return value;
}

static unsigned whole(const char *text) {
    double value = number(text);
    if (!(value >= 0 && value <= 4294967295.0) || value != floor(value)) fail("'%s' is not a whole number", text);
    return (unsigned)value;
}

static char *word(char **rest) {
    char *found = strtok_r(NULL, " \t", rest);
    if (!found) fail("a value is missing");
    return found;
}

static void nothing_left(char **rest) {
    char *found = strtok_r(NULL, " \t", rest);
    if (found) fail("unexpected '%s' at the end of the line", found);
}

static unsigned one_more(unsigned count, unsigned most) {
    if (count >= most) fail("no more than %u of these", most);
    return count;
}

static int set_number(struct device *device, const char *key, const char *text) {
    for (int i = 0; i < KEY_COUNT; i++) {
        if (strcmp(KEY_NAMES[i], key)) continue;
        double value = strcmp(text, "unsupported") ? number(text) : NAN;
        if (value < 0 || isinf(value) || (isnan(value) && strcmp(text, "unsupported"))) fail("%s cannot be '%s'", key, text);
        device->value[i] = value;
        return 1;
    }
    return 0;
}

static struct device *add_device(struct script *script, const char *uuid, int parent) {
    for (unsigned i = 0; i < script->device_count; i++)
        if (!strcmp(script->devices[i].uuid, uuid)) fail("there are two devices '%s'", uuid);
    struct device *device = &script->devices[one_more(script->device_count, MAX_DEVICES)];
    script->device_count++;
    copy(device->uuid, sizeof device->uuid, uuid);
    device->parent = parent;
    for (int i = 0; i < KEY_COUNT; i++) device->value[i] = NAN;
    return device;
}

static void add_gpu(struct script *script, char **rest) {
    struct device *gpu = add_device(script, word(rest), -1);
    gpu->value[memory_reserved_mib] = gpu->value[energy_base_mj] = 0;
    gpu->value[energy_step_ms] = 100;
    gpu->value[sample_period_ms] = 167;
    strcpy(gpu->name, "NVIDIA fake");
}

static void add_mig_device(struct script *script, const struct device *gpu, char **rest) {
    struct device *device = add_device(script, word(rest), (int)(gpu - script->devices));
    device->value[memory_reserved_mib] = 0;
    for (char *key; (key = strtok_r(NULL, " \t", rest));)
        if (!set_number(device, key, word(rest))) fail("'%s' is not a key of a mig_device", key);
    if (isnan(device->value[gpu_instance])) fail("a mig_device needs gpu_instance");
}

static void add_process(struct device *gpu, char **rest) {
    struct process *process = &gpu->processes[one_more(gpu->process_count++, MAX_PROCESSES)];
    const char *pid = word(rest), *used = word(rest), *instance = strtok_r(NULL, " \t", rest);
    process->pid = strcmp(pid, "self") ? whole(pid) : (unsigned)getpid();
    process->used_bytes = strcmp(used, "unknown") ? (unsigned long long)(whole(used) * MIB) : (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
    process->gpu_instance = instance ? whole(instance) : (unsigned)NVML_VALUE_NOT_AVAILABLE;
}

static void add_metric(struct device *gpu, char **rest) {
    unsigned id = whole(word(rest)), place = 0;
    while (place < gpu->metric_count && gpu->metrics[place].id != id) place++;
    if (place == gpu->metric_count) gpu->metric_count = one_more(place, MAX_METRICS) + 1;
    gpu->metrics[place] = (struct metric){id, number(word(rest))};
}

static void set_samples(struct device *gpu, const char *kind) {
    if (!strcmp(kind, "fresh")) gpu->samples = FRESH;
    else if (!strcmp(kind, "stale")) gpu->samples = STALE;
    else if (!strcmp(kind, "garbage")) gpu->samples = GARBAGE;
    else fail("samples are fresh, stale or garbage, not '%s'", kind);
}

static void add_refusal(struct script *script, char **rest) {
    struct refusal *refusal = &script->refusals[one_more(script->refusal_count++, MAX_REFUSALS)];
    copy(refusal->function, sizeof refusal->function, word(rest));
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        if (strncmp(refusal->function, "nvml", 4) || !dlsym(library, refusal->function)) fail("there is no function '%s'", refusal->function);
        dlclose(library);
    }
    const char *error = word(rest), *from_call = strtok_r(NULL, " \t", rest);
    int code = error_called(error);
    if (code < 0) fail("there is no error '%s'", error);
    refusal->error = (nvmlReturn_t)code;
    refusal->from_call = from_call ? whole(from_call) : 1;
}

static int read_driver_line(struct script *script, const char *key, char **rest) {
    if (!strcmp(key, "driver")) copy(script->driver, sizeof script->driver, word(rest));
    else if (!strcmp(key, "nvml")) copy(script->nvml, sizeof script->nvml, word(rest));
    else if (!strcmp(key, "cuda")) script->cuda = (int)whole(word(rest));
    else if (!strcmp(key, "count_calls")) copy(script->calls_file, sizeof script->calls_file, word(rest));
    else if (!strcmp(key, "refuse")) add_refusal(script, rest);
    else if (!strcmp(key, "gpu")) add_gpu(script, rest);
    else return 0;
    return 1;
}

static void read_device_line(struct script *script, struct device *gpu, const char *key, char **rest) {
    if (!strcmp(key, "name")) {
        copy(gpu->name, sizeof gpu->name, *rest);
        *rest += strlen(*rest);
    } else if (!strcmp(key, "samples")) set_samples(gpu, word(rest));
    else if (!strcmp(key, "process")) add_process(gpu, rest);
    else if (!strcmp(key, "gpm_metric")) add_metric(gpu, rest);
    else if (!strcmp(key, "mig_device")) add_mig_device(script, gpu, rest);
    else if (!set_number(gpu, key, word(rest))) fail("'%s' is not a key", key);
}

static void cut_comment(char *line) {
    line[strcspn(line, "\r\n")] = 0;
    for (char *mark = strchr(line, '#'); mark; mark = strchr(mark + 1, '#'))
        if (mark == line || strchr(" \t", mark[-1])) {
            *mark = 0;
            return;
        }
}

void read_script(const char *path, struct script *script) {
    file_name = path;
    line_number = 0;
    *script = (struct script){.driver = "550.54.15", .nvml = "12.550.54.15", .cuda = 12040};
    FILE *file = fopen(path, "re");
    if (!file) fail("cannot be read: %s", strerror(errno));
    struct device *gpu = NULL;
    for (char line[8192]; fgets(line, sizeof line, file);) {
        line_number++;
        cut_comment(line);
        for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]);) line[--end] = 0;
        char *rest, *key = strtok_r(line, " \t", &rest);
        if (!key) continue;
        if (!read_driver_line(script, key, &rest)) {
            if (!gpu) fail("'%s' needs a gpu line before it", key);
            read_device_line(script, gpu, key, &rest);
        } else if (!strcmp(key, "gpu")) gpu = &script->devices[script->device_count - 1];
        nothing_left(&rest);
    }
    fclose(file);
}
