/* The roles and rights of a page of the documentation, line by line: what it says is what is tested. */
#ifndef SNK_TEST_DOCUMENTED_H
#define SNK_TEST_DOCUMENTED_H

/*
 * Does what the section "A role of its own" says: statements by `run`, and `sneck setup` on the server at that port.
 * SNECK_SOURCE names the project's folder.
 */
void documented_roles(const char *page, int port, void (*run)(void *context, const char *sql), void *context);

#endif
