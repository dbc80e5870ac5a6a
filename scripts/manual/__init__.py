# SPDX-License-Identifier: Apache-2.0
"""Man pages and completion of the commands, from what each says of its options (--describe): see scripts/manuals."""
