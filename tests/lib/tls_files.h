/*
 * Certificates for tests, made by openssl when they are needed: ca.crt; server.crt and .key for localhost, 127.0.0.1 and
 * ::1; client.crt and .key; stranger.crt, another CA.
 */
#ifndef SNK_TEST_TLS_FILES_H
#define SNK_TEST_TLS_FILES_H

#include <stdbool.h>

/* Makes a directory with the files; `directory` has room for 64 bytes. `names` are the server's, as in "DNS:a,IP:1.2.3.4". */
bool tls_files_make(char directory[64], const char *names);
void tls_files_remove(const char *directory);

#endif
