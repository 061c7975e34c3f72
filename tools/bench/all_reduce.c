/* How long MPI_Allreduce of floats takes, in the way of `cargo bench -p yirage-comm --bench all_reduce`: the best of five means.
 *
 *     mpicc -O2 -o all_reduce tools/bench/all_reduce.c && mpirun -n 2 ./all_reduce
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int kib = 4; kib <= 16384; kib *= 4) {
        int count = kib * 256, rounds = 65536 / kib;
        rounds = rounds < 8 ? 8 : rounds > 2000 ? 2000 : rounds;
        float *values = calloc(count, sizeof *values);
        if (!values) MPI_Abort(MPI_COMM_WORLD, 1);
        double best = 1e9;
        for (int turn = 0; turn < 5; turn++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            for (int round = 0; round < rounds; round++)
                MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            double mean = (MPI_Wtime() - begun) / rounds;
            best = mean < best ? mean : best;
        }
        if (rank == 0)
            printf("%d ranks, %6d KiB: %10.1f us, %.2f GB/s\n", ranks, kib, best * 1e6, kib * 1024 / best / 1e9);
        free(values);
    }
    MPI_Finalize();
    return 0;
}
