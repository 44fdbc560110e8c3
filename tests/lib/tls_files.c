#include "tls_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char script[] =
    "set -e; cd \"$1\"; exec >log 2>&1\n"
    "key() { openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }\n"
    "ca() { key $1; openssl req -x509 -new -key $1.key -subj /CN=$1 -days 2 -out $1.crt; }\n"
    "issue() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr\n"
    "  printf 'subjectAltName=%s\\n' \"$2\" >$1.ext\n"
    "  openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile $1.ext -out $1.crt; }\n"
    "ca ca; ca stranger; issue server \"$2\"; issue client DNS:client\n";

static bool run(const char *text, const char *first, const char *second)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", text, "sh", first, second, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool tls_files_make(char directory[64], const char *names)
{
    snprintf(directory, 64, "/tmp/sneck-tls-XXXXXX");
    return mkdtemp(directory) != NULL && run(script, directory, names);
}

void tls_files_remove(const char *directory)
{
    run("rm -r -- \"$1\"", directory, "");
}
