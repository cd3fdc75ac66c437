/* What the program knows to be in the file, asked of the native side after each step; and names for what is to come. */
#ifndef DIFFERENTIAL_PLACES_H
#define DIFFERENTIAL_PLACES_H

#include "run.h"

/* Links, and the native addresses of all objects that they lead to. */
void learn_places(void);
/* A random known place of a kind; NULL if there is none. The others give "/" then, or, of links, NULL. */
const char *some(kind what);
const char *some_group(void);
const char *some_object(void);
const char *some_link(void);
/* A new path, now and then below a group that does not exist yet, or a name that is taken. */
void new_path(char path[PATH_SIZE], const char *stem);
hid_t link_plist(void);
void parent(const char *path, char group[PATH_SIZE]);
/* The nearest group above PATH that exists. */
void existing_parent(const char *path, char group[PATH_SIZE]);
/* Would a link to FROM inside group TO close a circle, or move FROM out of the tree? Asked of the twin. */
bool holds(const char *from, const char *to);

#endif
