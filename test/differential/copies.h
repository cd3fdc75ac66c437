/* Other files that the program copies from and to. */
#ifndef DIFFERENTIAL_COPIES_H
#define DIFFERENTIAL_COPIES_H

/* They are removed; what is copied next makes them anew. */
void unlink_outside(void);

#endif
