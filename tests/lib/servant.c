#include "servant.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct passwd *server_user(void)
{
    if (geteuid() != 0)
        return NULL;
    const struct passwd *user = getpwnam("postgres");
    return user != NULL ? user : getpwnam("nobody");
}

pid_t servant_spawn(const char *const words[], const char *log)
{
    pid_t parent = getpid();
    const struct passwd *user = server_user();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int null = open("/dev/null", O_RDWR);
    int output = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(null, 0);
    dup2(output, 1);
    dup2(output, 2);
    if (user != NULL && (setgroups(0, NULL) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0))
        _exit(126);
    /* After the change of user, which forgets it. SIGQUIT: a server that ends so takes its children along. */
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent || chdir("/") != 0)
        _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    union {
        const char *const *in;
        char *const *out;
    } arguments = { .in = words };
    execvp(words[0], arguments.out);
    _exit(127);
}

int servant_wait(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

bool servant_run(const char *const words[])
{
    pid_t pid = servant_spawn(words, "/dev/null");
    return pid > 0 && servant_wait(pid) == 0;
}

bool servant_make_directory(const char *name, char *directory, size_t size)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const struct passwd *user = server_user();
    snprintf(directory, size, "%s/%s-XXXXXX", parent, name);
    return mkdtemp(directory) != NULL && chmod(directory, 0755) == 0 &&
           (user == NULL || chown(directory, user->pw_uid, user->pw_gid) == 0);
}

static int remove_entry(const char *path, const struct stat *found, int type, struct FTW *place)
{
    (void)found;
    (void)type;
    (void)place;
    return remove(path);
}

void servant_remove_directory(const char *directory)
{
    if (directory[0] != '\0')
        (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
