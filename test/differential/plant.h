/* Side 1 is damaged now and then, as --plant says; the comparisons must notice. */
#ifndef DIFFERENTIAL_PLANT_H
#define DIFFERENTIAL_PLANT_H

void plant_damage(void);

#endif
