/* Whether two URLs mean the same locks. */
#ifndef SNK_CLI_STORE_IDENTITY_H
#define SNK_CLI_STORE_IDENTITY_H

/*
 * What URLs of the same locks have in common, without passwords and without control characters: the file by its real
 * name, or the server, its port and its database; and the prefix. Names of one server that differ (an address and its
 * name) are not recognised. Owned by the caller; NULL without memory.
 */
char *snk_store_identity(const char *url);

#endif
