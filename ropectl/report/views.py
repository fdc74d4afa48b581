"""What each kind of record looks like."""

from __future__ import annotations

from ropectl.report.comparison import comparison_tables
from ropectl.report.dry_run import comparison_estimate_parts
from ropectl.report.harness import harness_parts
from ropectl.report.passkey import passkey_parts
from ropectl.report.perplexity import perplexity_parts
from ropectl.report.sheet import View
from ropectl.report.tasks import plan_parts, task_list_parts, tasks_parts

COMPARISON = View(comparison_tables, has_values=True, is_headed=False)
COMPARISON_ESTIMATE = View(comparison_estimate_parts, is_headed=False)
PERPLEXITY = View(perplexity_parts, has_values=True)
PASSKEY = View(passkey_parts, has_values=True)
TASKS = View(tasks_parts, has_values=True)
TASK_LIST = View(task_list_parts, is_headed=False)
TASKS_PLAN = View(plan_parts, is_headed=False)
HARNESS = View(harness_parts)
