"""The guarded closed loop: propose, guard, build, compare, measure, accept or roll back; with a ledger."""
