/* See chunk_tree.h. Nodes are kept in memory until they are flushed. A node is checked when it is read, and against the node above each time
 * that one leads to it: its keys ascend, and are within those of the entry above. Each level is one less than the one above, so no walk goes
 * in circles. And no node has two places, since its first key is that of the entry which leads to it. */
#include "h5/chunk_tree.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"
#include "h5/checksum.h"

#include <stdlib.h>

#define NOWHERE    UINT64_MAX
#define MOST_DEPTH 64
#define MANY       512 /* nodes in memory, which are then written */

#define SIGNATURE "TREE"
#define CHUNKS    1 /* type of node */
#define LEVEL     5
#define ENTRIES   6
#define SIBLINGS  8

/* At the end of the root. */
#define OWNER      20
#define OWNER_SIGN "h5cowhd1"

typedef struct node {
    uint64_t address;
    bool changed;
    uint8_t bytes[];
} node;

struct cow_chunk_tree {
    cow_chunk_form form;
    const cow_chunk_tree_space *space;
    uint64_t root;
    size_t size, key, entry, first; /* bytes of a node, a key, an entry; where the first entry is */
    unsigned most;                  /* children */
    cow_map nodes;                  /* address -> node * */
};

/* The way from the root to an entry. */
typedef struct path {
    node *node[MOST_DEPTH];
    unsigned at[MOST_DEPTH]; /* which entry of it */
    unsigned depth;          /* nodes */
} path;

bool cow_chunk_form_of(const cow_dataset_header *header, unsigned half, cow_chunk_form *form)
{
    *form = (cow_chunk_form){.rank = header->rank, .element = (uint32_t)header->element_size, .half = half, .width = 8};
    memcpy(form->chunk, header->chunk, sizeof form->chunk);
    return header->layout == COW_DATASET_HEADER_TREE && header->index != UINT64_MAX && half > 0 && half <= 32767;
}

static size_t key_size(const cow_chunk_form *form)
{
    return 8 + 8 * ((size_t)form->rank + 1);
}

size_t cow_chunk_tree_node_size(const cow_chunk_form *form)
{
    return SIBLINGS + 2 * (size_t)form->width + 2 * (size_t)form->half * (key_size(form) + form->width) +
           key_size(form);
}

static uint64_t get_address(const cow_chunk_tree *t, const uint8_t *p)
{
    return t->form.width == 8 ? cow_get64(p) : cow_get32(p) == UINT32_MAX ? NOWHERE : cow_get32(p);
}

static void put_address(const cow_chunk_tree *t, uint8_t *p, uint64_t address)
{
    if (t->form.width == 8)
        cow_put64(p, address);
    else
        cow_put32(p, (uint32_t)address);
}

static unsigned entries(const node *n)
{
    return cow_get16(n->bytes + ENTRIES);
}

static unsigned level(const node *n)
{
    return n->bytes[LEVEL];
}

/* The key of an entry; its child stands behind it. */
static uint8_t *entry(const cow_chunk_tree *t, const node *n, unsigned i)
{
    return (uint8_t *)(uintptr_t)n->bytes + t->first + i * t->entry;
}

static uint64_t child(const cow_chunk_tree *t, const node *n, unsigned i)
{
    return get_address(t, entry(t, n, i) + t->key);
}

static uint8_t *sibling(const cow_chunk_tree *t, node *n, bool right)
{
    return n->bytes + SIBLINGS + (right ? t->form.width : 0);
}

/* Of two keys, by their offsets. */
static int compare(const cow_chunk_tree *t, const uint8_t *a, const uint8_t *b)
{
    for (unsigned d = 0; d <= t->form.rank; d++) {
        const uint64_t x = cow_get64(a + 8 + 8 * (size_t)d), y = cow_get64(b + 8 + 8 * (size_t)d);

        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static void make_key(const cow_chunk_tree *t, uint8_t *key, const uint64_t at[], const cow_chunk_place *place)
{
    cow_put32(key, place == NULL ? 0 : (uint32_t)place->size);
    cow_put32(key + 4, place == NULL ? 0 : place->mask);
    for (unsigned d = 0; d < t->form.rank; d++)
        cow_put64(key + 8 + 8 * (size_t)d, at[d]);
    cow_put64(key + 8 + 8 * (size_t)t->form.rank, 0);
}

/* Behind the last entry. */
static void end_entries(const cow_chunk_tree *t, node *n, unsigned count)
{
    uint8_t *last = entry(t, n, count);
    const size_t owner = n->address == t->root ? OWNER : 0;

    cow_put16(n->bytes + ENTRIES, (uint16_t)count);
    memset(last, 0, (size_t)(n->bytes + t->size - owner - last));
    for (unsigned d = 0; d < t->form.rank; d++)
        cow_put64(last + 8 + 8 * (size_t)d, UINT64_MAX / t->form.chunk[d] * t->form.chunk[d]);
    cow_put64(last + 8 + 8 * (size_t)t->form.rank, t->form.element);
    n->changed = true;
}

static void begin_node(const cow_chunk_tree *t, node *n, unsigned at_level)
{
    memcpy(n->bytes, SIGNATURE, 4);
    n->bytes[4] = CHUNKS;
    n->bytes[LEVEL] = (uint8_t)at_level;
    put_address(t, sibling(t, n, false), NOWHERE);
    put_address(t, sibling(t, n, true), NOWHERE);
    end_entries(t, n, 0);
}

/* ---- owners ---- */

static uint32_t owner_sum(uint64_t owner, uint64_t address)
{
    uint8_t bytes[24];

    memcpy(bytes, OWNER_SIGN, 8);
    cow_put64(bytes + 8, owner);
    cow_put64(bytes + 16, address);
    return cow_metadata_checksum(bytes, sizeof bytes);
}

static void put_owner(uint8_t *bytes, size_t size, uint64_t address, uint64_t owner)
{
    uint8_t *p = bytes + size - OWNER;

    memcpy(p, OWNER_SIGN, 8);
    cow_put64(p + 8, owner);
    cow_put32(p + 16, owner_sum(owner, address));
}

/* P: the bytes that tell it. */
static int owned(const uint8_t *p, uint64_t address, uint64_t *owner)
{
    const uint64_t number = cow_get64(p + 8);
    const bool has_sign = memcmp(p, OWNER_SIGN, 8) == 0, fits = cow_get32(p + 16) == owner_sum(number, address);

    if (has_sign && fits) {
        if (owner != NULL)
            *owner = number;
        return 1;
    }
    /* what is not ours might have a fitting sum by chance; but no file has so many datasets */
    return has_sign || (fits && number <= UINT32_MAX) ? -1 : 0;
}

int cow_chunk_tree_owned(const uint8_t *bytes, size_t size, uint64_t address, uint64_t *owner)
{
    return size < SIBLINGS + 8 + OWNER ? 0 : owned(bytes + size - OWNER, address, owner);
}

int cow_chunk_tree_owner(const cow_chunk_form *form, const cow_source *source, uint64_t root, uint64_t *owner)
{
    const size_t size = cow_chunk_tree_node_size(form);
    uint8_t bytes[OWNER];
    int status;

    if (root > source->end || (status = cow_source_bring(source, root + size - OWNER, bytes, sizeof bytes)) == 0)
        return 0;
    if (status > 0 && (status = owned(bytes, root, owner)) < 0)
        cow_error(COW_CORRUPT, "whose chunk index is at %llu is damaged", (unsigned long long)root);
    return status;
}

void cow_chunk_tree_hide(uint8_t *bytes, size_t size)
{
    bytes[LEVEL] = 0;
    cow_put16(bytes + ENTRIES, 0);
    memset(bytes + SIBLINGS, 0xff, size < SIBLINGS + 16 ? 0 : 16); /* it has none */
}

/* ---- nodes in memory ---- */

static node *known(const cow_chunk_tree *t, uint64_t address)
{
    uint64_t value;

    return cow_map_get(&t->nodes, address, &value) ? (node *)(uintptr_t)value : NULL;
}

static node *add(cow_chunk_tree *t, uint64_t address)
{
    node *n = malloc(sizeof *n + t->size);

    if (n == NULL || cow_map_put(&t->nodes, address, (uintptr_t)n) < 0) {
        free(n);
        return NULL;
    }
    n->address = address;
    n->changed = false;
    return n;
}

static void drop(cow_chunk_tree *t, node *n)
{
    cow_map_remove(&t->nodes, n->address);
    free(n);
}

/* Is it a node as it may be in a tree, wherever that is? */
static bool possible(const cow_chunk_tree *t, const node *n)
{
    const unsigned count = entries(n);
    const bool is_root = n->address == t->root;

    if (memcmp(n->bytes, SIGNATURE, 4) != 0 || n->bytes[4] != CHUNKS || count + is_root > t->most ||
        level(n) >= MOST_DEPTH || (count == 0 && !is_root))
        return false;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *key = entry(t, n, i);

        for (unsigned d = 0; d < t->form.rank; d++)
            if (cow_get64(key + 8 + 8 * (size_t)d) % t->form.chunk[d] != 0)
                return false;
        if (cow_get64(key + 8 + 8 * (size_t)t->form.rank) != 0 || child(t, n, i) == NOWHERE ||
            (level(n) == 0 && cow_get32(key) == 0) || (i > 0 && compare(t, key, entry(t, n, i - 1)) <= 0))
            return false;
    }
    return true;
}

/* The node at ADDRESS. 1; 0; -1. */
static int get(cow_chunk_tree *t, uint64_t address, node **n)
{
    int status;

    if ((*n = known(t, address)) != NULL)
        return 1;
    if ((*n = add(t, address)) == NULL)
        return 0;
    status = cow_source_bring(t->space->source, address, (*n)->bytes, t->size);
    if (status > 0 && !possible(t, *n))
        status = 0;
    if (status <= 0)
        drop(t, *n);
    return status;
}

/* The child of entry I of ABOVE. */
static int get_child(cow_chunk_tree *t, const node *above, unsigned i, node **n)
{
    int status = get(t, child(t, above, i), n);

    return status > 0 &&
                   ((*n)->address == t->root || level(*n) + 1 != level(above) ||
                    compare(t, entry(t, *n, 0), entry(t, above, i)) != 0 ||
                    (i + 1 < entries(above) && compare(t, entry(t, *n, entries(*n) - 1), entry(t, above, i + 1)) >= 0))
               ? 0
               : status;
}

static int add_new(cow_chunk_tree *t, unsigned at_level, node **n)
{
    uint64_t address;

    if (t->space->take(t->space->context, t->size, &address) < 0)
        return -1;
    if (known(t, address) != NULL || (*n = add(t, address)) == NULL)
        return 0;
    begin_node(t, *n, at_level);
    return 1;
}

static void forget_nodes(cow_chunk_tree *t)
{
    for (size_t i = 0; i < t->nodes.capacity; i++)
        if (t->nodes.entry[i].used)
            free((node *)(uintptr_t)t->nodes.entry[i].value);
    cow_map_free(&t->nodes);
}

int cow_chunk_tree_flush(cow_chunk_tree *t)
{
    for (size_t i = 0; i < t->nodes.capacity; i++) {
        node *n = t->nodes.entry[i].used ? (node *)(uintptr_t)t->nodes.entry[i].value : NULL;

        if (n == NULL || !n->changed)
            continue;
        if (t->space->write(t->space->context, n->address, n->bytes, t->size) < 0)
            return -1;
        n->changed = false;
    }
    return 1;
}

/* ---- the tree ---- */

static void set_form(cow_chunk_tree *t, const cow_chunk_form *form, const cow_chunk_tree_space *space)
{
    *t = (cow_chunk_tree){.form = *form,
                          .space = space,
                          .size = cow_chunk_tree_node_size(form),
                          .key = key_size(form),
                          .entry = key_size(form) + form->width,
                          .first = SIBLINGS + 2 * (size_t)form->width,
                          .most = 2 * form->half};
}

int cow_chunk_tree_create(const cow_chunk_form *form, const cow_chunk_tree_space *space, uint64_t owner, uint64_t *root)
{
    cow_chunk_tree t;
    node *n;
    int status;

    set_form(&t, form, space);
    if (space->take(space->context, t.size, &t.root) < 0)
        return -1;
    *root = t.root;
    if ((n = malloc(sizeof *n + t.size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a chunk index");
    n->address = t.root;
    begin_node(&t, n, 0);
    put_owner(n->bytes, t.size, t.root, owner);
    status = space->write(space->context, t.root, n->bytes, t.size);
    free(n);
    return status;
}

int cow_chunk_tree_open(const cow_chunk_form *form, const cow_chunk_tree_space *space, uint64_t root,
                        cow_chunk_tree **tree, uint64_t *owner)
{
    cow_chunk_tree *t = malloc(sizeof *t);
    node *n = NULL;
    int status = 0;

    *tree = NULL;
    if (t == NULL || form->half < 1 || form->half > 32767) {
        free(t);
        return 0;
    }
    set_form(t, form, space);
    t->root = root;
    if ((status = get(t, root, &n)) > 0 && cow_chunk_tree_owned(n->bytes, t->size, root, owner) <= 0)
        status = 0;
    if (status <= 0) {
        cow_chunk_tree_close(t);
        return status;
    }
    *tree = t;
    return 1;
}

void cow_chunk_tree_close(cow_chunk_tree *tree)
{
    if (tree != NULL)
        forget_nodes(tree);
    free(tree);
}

/* The last entry whose key is not behind KEY; the first one, if all are. *FOUND: it is equal. */
static unsigned search(const cow_chunk_tree *t, const node *n, const uint8_t *key, bool *found)
{
    unsigned low = 0, high = entries(n);

    *found = false;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        const int order = compare(t, entry(t, n, middle), key);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : 0;
}

/* The way to the entry of KEY in a leaf, or to where it would be. 1; 0; -1. */
static int locate(cow_chunk_tree *t, const uint8_t *key, path *p, bool *found)
{
    int status = get(t, t->root, &p->node[0]);

    for (p->depth = 1; status > 0; p->depth++) {
        const unsigned last = p->depth - 1;

        p->at[last] = search(t, p->node[last], key, found);
        if (level(p->node[last]) == 0)
            return 1;
        if (entries(p->node[last]) == 0)
            return 0;
        status = get_child(t, p->node[last], p->at[last], &p->node[p->depth]);
    }
    return status;
}

/* ---- changes ---- */

/* The first key of node D of the way has changed. */
static void tell_first_key(const cow_chunk_tree *t, const path *p, unsigned d)
{
    const uint8_t *key = entry(t, p->node[d], 0);

    for (; d > 0; d--) {
        memcpy(entry(t, p->node[d - 1], p->at[d - 1]) + 8, key + 8, t->key - 8);
        p->node[d - 1]->changed = true;
        if (p->at[d - 1] > 0)
            return;
    }
}

static void put_entry(const cow_chunk_tree *t, node *n, unsigned at, const uint8_t *key, uint64_t address)
{
    const unsigned count = entries(n);
    uint8_t *place = entry(t, n, at);

    memmove(place + t->entry, place, (count - at) * t->entry);
    memcpy(place, key, t->key);
    put_address(t, place + t->key, address);
    end_entries(t, n, count + 1);
}

/* The node at ADDRESS, if there is one, has N beside it now. */
static int set_sibling(cow_chunk_tree *t, uint64_t address, bool right, uint64_t n)
{
    node *beside;
    int status;

    if (address == NOWHERE)
        return 1;
    if ((status = get(t, address, &beside)) <= 0)
        return status;
    put_address(t, sibling(t, beside, right), n);
    beside->changed = true;
    return 1;
}

/* The root's entries go into a new node below it. */
static int deepen(cow_chunk_tree *t, path *p)
{
    node *root = p->node[0], *below;
    const uint8_t none[8] = {0};
    uint8_t key[8 + 8 * (COW_CHUNK_TREE_RANK + 1)];
    const unsigned count = entries(root), at_level = level(root);
    int status;

    if (p->depth == MOST_DEPTH)
        return 0;
    if ((status = add_new(t, at_level, &below)) <= 0)
        return status;
    memcpy(entry(t, below, 0), entry(t, root, 0), count * t->entry);
    end_entries(t, below, count);
    memcpy(key, entry(t, root, 0), t->key);
    memcpy(key, none, 8);
    root->bytes[LEVEL] = (uint8_t)(at_level + 1);
    end_entries(t, root, 0);
    put_entry(t, root, 0, key, below->address);
    for (unsigned d = p->depth++; d > 0; d--) {
        p->node[d] = p->node[d - 1];
        p->at[d] = p->at[d - 1];
    }
    p->node[1] = below;
    p->at[0] = 0;
    return 1;
}

/* KEY comes into node D of the way, at its place AT: where the node is full, into one of two. */
static int insert(cow_chunk_tree *t, path *p, unsigned d, unsigned at, const uint8_t *key, uint64_t address)
{
    node *n = p->node[d], *more;
    unsigned count = entries(n), kept;
    uint8_t first[8 + 8 * (COW_CHUNK_TREE_RANK + 1)];
    uint64_t right;
    int status;

    if (d == 0 && count == t->most - 1) {
        if ((status = deepen(t, p)) <= 0)
            return status;
        n = p->node[d = 1];
    }
    if (count < t->most) {
        put_entry(t, n, at, key, address);
        if (at == 0)
            tell_first_key(t, p, d);
        return 1;
    }
    right = get_address(t, sibling(t, n, true));
    if ((status = add_new(t, level(n), &more)) <= 0)
        return status;
    /* what grows at its end fills its nodes */
    kept = at == count && right == NOWHERE ? count : count / 2;
    memcpy(entry(t, more, 0), entry(t, n, kept), (count - kept) * t->entry);
    end_entries(t, more, count - kept);
    end_entries(t, n, kept);
    put_address(t, sibling(t, more, false), n->address);
    put_address(t, sibling(t, more, true), right);
    put_address(t, sibling(t, n, true), more->address);
    if ((status = set_sibling(t, right, false, more->address)) <= 0)
        return status;
    if (at < kept || (at == kept && kept < count)) {
        put_entry(t, n, at, key, address);
        if (at == 0)
            tell_first_key(t, p, d);
    } else
        put_entry(t, more, at - kept, key, address);
    memset(first, 0, 8);
    memcpy(first + 8, entry(t, more, 0) + 8, t->key - 8);
    return insert(t, p, d - 1, p->at[d - 1] + 1, first, more->address);
}

/* The entry of node D that the way leads through goes, and the node with its last one. */
static int take_out(cow_chunk_tree *t, path *p, unsigned d)
{
    node *n = p->node[d];
    const unsigned count = entries(n), at = p->at[d];
    const uint64_t left = get_address(t, sibling(t, n, false)), right = get_address(t, sibling(t, n, true));
    uint64_t address = n->address;
    int status;

    if (count > 1 || d == 0) {
        memmove(entry(t, n, at), entry(t, n, at + 1), (count - at - 1) * t->entry);
        end_entries(t, n, count - 1);
        if (count == 1)
            n->bytes[LEVEL] = 0;
        else if (at == 0)
            tell_first_key(t, p, d);
        return 1;
    }
    if ((status = set_sibling(t, left, true, right)) <= 0 || (status = set_sibling(t, right, false, left)) <= 0)
        return status;
    drop(t, n);
    return t->space->give(t->space->context, address, t->size) < 0 ? -1 : take_out(t, p, d - 1);
}

int cow_chunk_tree_put(cow_chunk_tree *t, const uint64_t at[], const cow_chunk_place *place)
{
    uint8_t key[8 + 8 * (COW_CHUNK_TREE_RANK + 1)];
    node *leaf;
    path p;
    bool found;
    int status;

    if (t->nodes.count > MANY) {
        if ((status = cow_chunk_tree_flush(t)) <= 0)
            return status;
        forget_nodes(t);
    }
    make_key(t, key, at, place);
    if ((status = locate(t, key, &p, &found)) <= 0)
        return status;
    leaf = p.node[p.depth - 1];
    if (place->address == NOWHERE)
        return found ? take_out(t, &p, p.depth - 1) : 1;
    if (!found) {
        const unsigned last = p.depth - 1;
        const bool behind = entries(leaf) > 0 && compare(t, entry(t, leaf, p.at[last]), key) < 0;

        return insert(t, &p, last, p.at[last] + behind, key, place->address);
    }
    if (memcmp(entry(t, leaf, p.at[p.depth - 1]), key, t->key) != 0 ||
        child(t, leaf, p.at[p.depth - 1]) != place->address) {
        memcpy(entry(t, leaf, p.at[p.depth - 1]), key, t->key);
        put_address(t, entry(t, leaf, p.at[p.depth - 1]) + t->key, place->address);
        leaf->changed = true;
    }
    return 1;
}

/* ---- reading ---- */

static void take_place(const cow_chunk_tree *t, const uint8_t *key, cow_chunk_place *place)
{
    *place = (cow_chunk_place){get_address(t, key + t->key), cow_get32(key), cow_get32(key + 4)};
}

int cow_chunk_tree_find(cow_chunk_tree *t, const uint64_t at[], cow_chunk_place *place)
{
    uint8_t key[8 + 8 * (COW_CHUNK_TREE_RANK + 1)];
    path p;
    bool found;
    int status;

    *place = (cow_chunk_place){.address = NOWHERE};
    make_key(t, key, at, NULL);
    if ((status = locate(t, key, &p, &found)) > 0 && found)
        take_place(t, entry(t, p.node[p.depth - 1], p.at[p.depth - 1]), place);
    return status;
}

/* N is forgotten, unless it was there before. */
static int visit_below(cow_chunk_tree *t, node *n, const cow_chunk_tree_visitor *v)
{
    int status = v->node == NULL ? 1 : v->node(v->context, n->address);

    for (unsigned i = 0; status == 1 && i < entries(n); i++) {
        if (level(n) == 0) {
            const uint8_t *key = entry(t, n, i);
            uint64_t at[COW_CHUNK_TREE_RANK];
            cow_chunk_place place;

            for (unsigned d = 0; d < t->form.rank; d++)
                at[d] = cow_get64(key + 8 + 8 * (size_t)d);
            take_place(t, key, &place);
            status = v->chunk == NULL ? 1 : v->chunk(v->context, at, &place);
        } else {
            node *below;

            if ((status = get_child(t, n, i, &below)) > 0) {
                status = visit_below(t, below, v);
                drop(t, below);
            }
        }
    }
    return status;
}

int cow_chunk_tree_visit(cow_chunk_tree *t, const cow_chunk_tree_visitor *visitor)
{
    node *root;
    int status;

    forget_nodes(t);
    status = get(t, t->root, &root);
    return status <= 0 ? status : visit_below(t, root, visitor);
}

static int give_back(void *context, uint64_t address)
{
    const cow_chunk_tree *t = context;

    return address == t->root || t->space->give(t->space->context, address, t->size) == 0 ? 1 : -1;
}

int cow_chunk_tree_clear(cow_chunk_tree *t)
{
    const cow_chunk_tree_visitor visitor = {.node = give_back, .context = t};
    node *root;
    int status;

    if ((status = cow_chunk_tree_visit(t, &visitor)) <= 0 || (status = get(t, t->root, &root)) <= 0)
        return status;
    root->bytes[LEVEL] = 0;
    end_entries(t, root, 0);
    return cow_chunk_tree_flush(t);
}
