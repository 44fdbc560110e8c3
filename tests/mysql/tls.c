/* TLS to MariaDB: nothing is sent to a server that is not the one that was meant. */
#include "test.h"

#include <string.h>
#include <sys/stat.h>

#include "bed.h"
#include "mysql_bed.h"
#include "tls_files.h"

static char files[64];     /* whose server.crt is for 127.0.0.1 */
static char elsewhere[64]; /* whose server.crt is for another host */

static sneck_status try_open(int port, const char *keys, sneck_error *error)
{
    sneck_client *client = NULL;
    sneck_status status = sneck_open(mysql_bed_url_at(port, keys), NULL, &client, error);
    sneck_lock *lock = NULL;
    if (status == SNECK_OK)
        status = sneck_mutex(client, "a", NULL, &lock, error);
    if (status == SNECK_OK)
        status = sneck_acquire(lock, 0, error);
    if (status == SNECK_OK)
        status = sneck_release(lock, error);
    sneck_lock_free(lock);
    sneck_close(client);
    return status;
}

/* Starts a server with the certificate in this folder, at which only TLS will do. */
static void start(mysql_bed *bed, const char *folder)
{
    static char words[3][128];
    static const char *options[] = { words[0], words[1], words[2], NULL };
    (void)snprintf(words[0], sizeof words[0], "--ssl-ca=%s/ca.crt", folder);
    (void)snprintf(words[1], sizeof words[1], "--ssl-cert=%s/server.crt", folder);
    (void)snprintf(words[2], sizeof words[2], "--ssl-key=%s/server.key", folder);
    mysql_bed_start_with(bed, options);
    mysql_bed_do(bed, "ALTER USER sneck REQUIRE SSL");
}

static const char *key_of(const char *folder, const char *file, const char *more)
{
    static char text[200];
    (void)snprintf(text, sizeof text, "ca=%s/%s%s", folder, file, more);
    return text;
}

static void test_chain_and_host_are_checked(void **state)
{
    (void)state;
    mysql_bed bed;
    sneck_error error;
    start(&bed, files);
    EXPECT(SNECK_DENIED, try_open(bed.server.port, NULL, &error)); /* without TLS */
    EXPECT(SNECK_OK, try_open(bed.server.port, key_of(files, "ca.crt", ""), &error));
    EXPECT(SNECK_UNAVAILABLE, try_open(bed.server.port, key_of(files, "stranger.crt", ""), &error));
    assert_non_null(strstr(error.message, "certificate"));
    EXPECT(SNECK_OK, try_open(bed.server.port, key_of(files, "stranger.crt", "&verify=none"), &error));
    mysql_bed_stop(&bed);
}

/* Without ca= the certificates that the system trusts count. */
static void test_verify_alone_asks_for_tls(void **state)
{
    (void)state;
    mysql_bed bed;
    sneck_error error;
    char ca[96];
    start(&bed, files);
    EXPECT(SNECK_OK, try_open(bed.server.port, "verify=none", &error));
    EXPECT(SNECK_UNAVAILABLE, try_open(bed.server.port, "verify=full", &error));
    assert_non_null(strstr(error.message, "certificate"));
    (void)snprintf(ca, sizeof ca, "%s/ca.crt", files);
    assert_int_equal(setenv("SSL_CERT_FILE", ca, 1), 0);
    EXPECT(SNECK_OK, try_open(bed.server.port, "verify=full", &error));
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    mysql_bed_stop(&bed);
}

static void test_a_certificate_for_another_host_is_refused(void **state)
{
    (void)state;
    mysql_bed bed;
    sneck_error error;
    start(&bed, elsewhere);
    EXPECT(SNECK_UNAVAILABLE, try_open(bed.server.port, key_of(elsewhere, "ca.crt", ""), &error));
    EXPECT(SNECK_OK, try_open(bed.server.port, key_of(elsewhere, "ca.crt", "&verify=none"), &error));
    mysql_bed_stop(&bed);
}

/* The server may run as another user than the test. */
static bool make_readable(const char *folder)
{
    char key[96];
    (void)snprintf(key, sizeof key, "%s/server.key", folder);
    return chmod(folder, 0755) == 0 && chmod(key, 0644) == 0;
}

static int make_files(void **state)
{
    (void)state;
    bool made = tls_files_make(files, "DNS:localhost,IP:127.0.0.1") && tls_files_make(elsewhere, "DNS:example.org");
    return made && make_readable(files) && make_readable(elsewhere) ? 0 : -1;
}

static int remove_files(void **state)
{
    (void)state;
    tls_files_remove(files);
    tls_files_remove(elsewhere);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_and_host_are_checked),
        cmocka_unit_test(test_verify_alone_asks_for_tls),
        cmocka_unit_test(test_a_certificate_for_another_host_is_refused),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
