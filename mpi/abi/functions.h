// SPDX-License-Identifier: Apache-2.0
// MPI's functions that this folder's library calls, in the words of the standard. The types are
// those of the header that includes this one.
#pragma once

extern "C" {
int MPI_Add_error_class(int* error_class);
int MPI_Add_error_code(int error_class, int* code);
int MPI_Add_error_string(int code, const char* text);
int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                  int recv_count, MPI_Datatype recv_type, MPI_Comm comm);
int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);
int MPI_Cartdim_get(MPI_Comm comm, int* dimensions);
int MPI_Comm_call_errhandler(MPI_Comm comm, int code);
int MPI_Comm_create_keyval(int (*copy)(MPI_Comm, int, void*, void*, void*, int*),
                           int (*on_free)(MPI_Comm, int, void*, void*), int* keyval, void* extra);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* found);
int MPI_Comm_group(MPI_Comm comm, MPI_Group* group);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_remote_size(MPI_Comm comm, int* size);
int MPI_Comm_set_attr(MPI_Comm comm, int keyval, void* value);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made);
int MPI_Comm_test_inter(MPI_Comm comm, int* is);
int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int* in, int* out, int* weighted);
int MPI_Finalized(int* is);
int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int* count);
int MPI_Grequest_complete(MPI_Request request);
int MPI_Grequest_start(int (*on_query)(void*, MPI_Status*), int (*on_free)(void*),
                       int (*on_cancel)(void*, int), void* extra, MPI_Request* request);
int MPI_Group_free(MPI_Group* group);
int MPI_Group_translate_ranks(MPI_Group one, int count, const int* ranks, MPI_Group other,
                              int* translated);
int MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request);
int MPI_Info_get(MPI_Info info, const char* key, int length, char* value, int* found);
int MPI_Info_set(MPI_Info info, const char* key, const char* value);
int MPI_Initialized(int* is);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* found, MPI_Status* status);
int MPI_Pack(const void* in, int count, MPI_Datatype type, void* out, int out_size, int* position,
             MPI_Comm comm);
int MPI_Recv_init(void* recv, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request);
int MPI_Request_free(MPI_Request* request);
int MPI_Request_get_status(MPI_Request request, int* done, MPI_Status* status);
int MPI_Send(const void* send, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void* recv, int recv_count, MPI_Datatype recv_type, int from, int recv_tag,
                 MPI_Comm comm, MPI_Status* status);
int MPI_Start(MPI_Request* request);
int MPI_Status_set_cancelled(MPI_Status* status, int is);
int MPI_Status_set_elements(MPI_Status* status, MPI_Datatype type, int count);
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status);
int MPI_Testany(int count, MPI_Request* requests, int* index, int* found, MPI_Status* status);
int MPI_Testsome(int count, MPI_Request* requests, int* found, int* indices, MPI_Status* statuses);
int MPI_Topo_test(MPI_Comm comm, int* topology);
int MPI_Type_commit(MPI_Datatype* type);
int MPI_Type_contiguous(int count, MPI_Datatype old, MPI_Datatype* made);
int MPI_Type_create_struct(int count, const int* lengths, const MPI_Aint* places,
                           const MPI_Datatype* types, MPI_Datatype* made);
int MPI_Type_free(MPI_Datatype* type);
int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint* bound, MPI_Aint* extent);
int MPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint* bound, MPI_Aint* extent);
int MPI_Type_size_x(MPI_Datatype type, MPI_Count* size);
int MPI_Unpack(const void* in, int in_size, int* position, void* out, int count, MPI_Datatype type,
               MPI_Comm comm);
}
