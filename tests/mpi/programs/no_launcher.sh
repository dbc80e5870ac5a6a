#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# no_launcher.sh GDRX PROGRAM: a program of MPICH where PATH has another MPI's mpirun alone.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n' > "$folder/mpirun"
chmod +x "$folder/mpirun"
said=$(PATH=$folder "$1" mpirun -np 2 "$2" 2>&1) && { echo "the status is 0: $said"; exit 1; }
echo "$said"
echo "$said" | grep -q "is linked to lib.*MPICH or Intel MPI, and there is no launcher of that on PATH.*mpirun is Open MPI's"
