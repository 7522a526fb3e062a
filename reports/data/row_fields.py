"""The fields of the rows of a run and of its plans, as read.py checks them: what is required, and
what may be null.
"""

from .kernel_fields import KERNEL, Types

PROBLEM: Types = {
    **dict.fromkeys(
        ("batch", "seq_len", "kv_seq_len", "d_model", "heads", "kv_heads", "d_k", "d_v"), (int,)
    ),
    **dict.fromkeys(("dtype", "passes", "scope", "causal_align", "mask"), (str,)),
    "causal": (bool,),
    "window": (int,),
}
LATER = {"mask": "none", "window": 0}  # a problem that was written before masks existed has none
REQUIRED: Types = {
    **dict.fromkeys(
        ("kind", "case", "backend", "device", "status", "reason", "phase", "predicted_reason"),
        (str,),
    ),
    **dict.fromkeys(("attempt", "work_flops"), (int,)),
    **PROBLEM,
}
SAMPLES = ("block_ms", "wall_block_ms", "hot_block_ms", "graph_block_ms")
NULLABLE: Types = {
    **dict.fromkeys(
        (
            *(
                "log_tail",
                "session",
                "stop",
                "graph_reason",
                "peak_source",
                "predicted_source",
                "meta_reason",
            ),
            *(
                "kernel_requested",
                "kernel",
                "started_utc",
                "utilization_tier",
                "python",
                "exactness",
            ),
        ),
        (str,),
    ),
    **dict.fromkeys(
        (
            "processes",
            "input_bytes",
            "peak_bytes",
            "output_bytes",
            "predicted_peak_bytes",
            "meta_peak_bytes",
        ),
        (int,),
    ),
    **dict.fromkeys(
        ("resident_peak_bytes", "allocated_peak_bytes", "reserved_peak_bytes", "device_used_bytes"),
        (int,),
    ),
    **dict.fromkeys(("work_exps", "minimal_bytes"), (int,)),
    **dict.fromkeys(("contended_blocks", "throttled_blocks"), (int,)),
    "warmup_stationary": (bool,),
    **dict.fromkeys(
        ("half_width_ratio", "pair_half_width_ratio", "error_l2_ratio", "error_ratio", "spent_s"),
        (int, float),
    ),
    **dict.fromkeys(("prepare_ms", "first_call_ms"), (int, float)),
    **dict.fromkeys((*SAMPLES, "conditions", "windows"), (list,)),
    **dict.fromkeys(("tables", "missing", "configuration"), (dict,)),
}
WALL_PROBLEM = {
    field: types for field, types in PROBLEM.items() if field not in ("seq_len", "kv_seq_len")
}
WALL_REQUIRED: Types = {
    **dict.fromkeys(
        ("kind", "case", "backend", "device", "status", "reason", "predicted_reason"), (str,)
    ),
    **dict.fromkeys(("attempt", "memory_bytes"), (int,)),
    "probes": (list,),
    **WALL_PROBLEM,
}
WALL_NULLABLE: Types = {
    **dict.fromkeys(("kv_seq_len", "seq_len_low", "seq_len_high", "predicted_seq_len"), (int,)),
    **dict.fromkeys(
        ("limited_by", "predicted_source", "log_tail", "started_utc", "python", "exactness"), (str,)
    ),
    "spent_s": (int, float),
}
STUDY_REQUIRED: Types = {
    **dict.fromkeys(("kind", "case", "study", "device", "status", "reason"), (str,)),
    "attempt": (int,),
    "findings": (list,),
}
STUDY_NULLABLE: Types = {"log_tail": (str,), "started_utc": (str,), "spent_s": (int, float)}
KINDS = {
    "latency": (REQUIRED, NULLABLE),
    "wall": (WALL_REQUIRED, WALL_NULLABLE),
    "study": (STUDY_REQUIRED, STUDY_NULLABLE),
    **KERNEL,
}
PROBE: Types = {"seq_len": (int,), "status": (str,), "reason": (str,), "spent_s": (int, float)}
WINDOW: Types = {"way": (str,), "window_s": (int, float), "calls": (int,)}
WINDOW_VALUES = (int, float, str, bool, type(None))
ENVIRONMENT: Types = {"name": (str,), "path": (str,), "environment": (dict,)}
