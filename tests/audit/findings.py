"""What an audit found, printed at once: a large audit takes long."""

from __future__ import annotations


class Findings(list[str]):
    """Findings in words."""

    def note(self, finding: str) -> None:
        """Keep and print a finding."""
        self.append(finding)
        print(f"  {finding}", flush=True)
