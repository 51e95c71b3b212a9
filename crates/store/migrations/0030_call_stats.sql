-- Where the time of a call went, each part in microseconds; nothing where it is not known. And the call whose answer was handed out again.
alter table tool_calls add column approval_us bigint;
alter table tool_calls add column queue_us bigint;
alter table tool_calls add column renewal_us bigint;
alter table tool_calls add column upstream_us bigint;
alter table tool_calls add column repeats_id uuid;

-- Where a call that ended counts in statistics: the bin of its duration, four to each doubling of a microsecond, and 128 more for one that
-- did not succeed. 255 has no duration. Nothing while the call is under way.
alter table tool_calls add column stat_bin bigint;

-- Of calls from before, the doubling is known.
update tool_calls set stat_bin = case when outcome = 'unknown' then 255 else (case when outcome = 'ok' then 0 else 128 end) + (case
    when duration_us < 2 then 0
    when duration_us < 4 then 6
    when duration_us < 8 then 10
    when duration_us < 16 then 14
    when duration_us < 32 then 18
    when duration_us < 64 then 22
    when duration_us < 128 then 26
    when duration_us < 256 then 30
    when duration_us < 512 then 34
    when duration_us < 1024 then 38
    when duration_us < 2048 then 42
    when duration_us < 4096 then 46
    when duration_us < 8192 then 50
    when duration_us < 16384 then 54
    when duration_us < 32768 then 58
    when duration_us < 65536 then 62
    when duration_us < 131072 then 66
    when duration_us < 262144 then 70
    when duration_us < 524288 then 74
    when duration_us < 1048576 then 78
    when duration_us < 2097152 then 82
    when duration_us < 4194304 then 86
    when duration_us < 8388608 then 90
    when duration_us < 16777216 then 94
    when duration_us < 33554432 then 98
    when duration_us < 67108864 then 102
    when duration_us < 134217728 then 106
    when duration_us < 268435456 then 110
    when duration_us < 536870912 then 114
    when duration_us < 1073741824 then 118
    when duration_us < 2147483648 then 122
    else 126 end) end
where outcome <> 'running';

-- Statistics count along these, without looking at a row.
create index tool_calls_stats on tool_calls (project_id, stat_bin, created_at) where stat_bin is not null;
create index tool_calls_tool on tool_calls (project_id, tool, created_at, stat_bin) where stat_bin is not null;
create index tool_calls_errors on tool_calls (project_id, created_at, tool, stat_bin) where stat_bin >= 128;

-- The calls of one run and of one delivery.
create index tool_calls_run on tool_calls (project_id, run_id, id) where run_id is not null;
create index tool_calls_delivery on tool_calls (project_id, delivery_id, id) where delivery_id is not null;
