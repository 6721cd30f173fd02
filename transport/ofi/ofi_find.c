/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider and what is asked of it. One query for each name and set of hints: a query for "the
 * best" may fall to a far slower provider without a word, and one capability too many may cost the
 * order of writes. The ladder leaves out the least valuable first: atomics (asked only where the
 * device does them: emulated ones cost order), the source's address, order, GPU memory.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "transport/ofi/ofi_find.h"

/*
 * Best first. Not here, and used only where named: shm (reaches this host only), sockets and
 * udp;ofi_rxd (slow, for tests), psm3 (slower than tcp on plain Ethernet), and whatever is unknown.
 * ofi_mrail and lnx cannot carry RMA the way that is needed.
 */
static const char *const own[] = {"cxi", "efa", "opx",         "verbs-msg", "verbs;ofi_rxm",
                                  "tcp", "net", "tcp;ofi_rxm", NULL};
#define OWN (sizeof(own) / sizeof(own[0]) - 1)

/* Names that stand for their layer over it, where the provider alone has no RDM endpoints. */
static const struct {
    const char *name, *layered;
} layers[] = {{"tcp", "tcp;ofi_rxm"}, {"udp", "udp;ofi_rxd"}};

/*
 * Connections of its own give a job the device's atomics, at the price of two for each pair of
 * ranks and context, with receives for each; more ranks than this share RxM's, made on demand.
 */
#define CONNECT_MOST 64
static const char *const by_size[] = {"verbs-msg", "verbs;ofi_rxm"};

/* What is used only where named, for those who named what is not there. */
static const char *const others[] = {"sockets", "udp;ofi_rxd", "psm3", "psm2", "shm", NULL};

/* Providers whose device applies atomics; asking the others for FI_ATOMIC costs order. */
static const char *const device_atomics[] = {"cxi", "sockets", "verbs-msg", "sockets-msg"};

/* The two change places where there are too many ranks. */
static const char *for_ranks(const char *name, int ranks)
{
    bool few = ranks > 0 && ranks <= CONNECT_MOST;
    for (size_t k = 0; k < 2 && !few; k++)
        if (strcmp(name, by_size[k]) == 0)
            return by_size[1 - k];
    return name;
}

const char *gi_ofi_own(size_t i, int ranks)
{
    return i < OWN ? for_ranks(own[i], ranks) : NULL;
}

uint32_t gi_ofi_api(void)
{
    uint32_t mine = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), runs = fi_version();
    return FI_VERSION_LT(runs, mine) ? runs : mine;
}

static bool is_hook(const char *part)
{
    return strncasecmp(part, "ofi_hook_", 9) == 0;
}

/* The part of a layered name at *at, which moves behind it; its length, 0 at the end. */
static size_t next_part(const char **at, const char **part)
{
    size_t len;
    do {
        *at += strspn(*at, ";");
        *part = *at;
        len = strcspn(*at, ";");
        *at += len;
    } while (len != 0 && is_hook(*part));
    return len;
}

bool gi_ofi_same_name(const char *a, const char *b)
{
    const char *part, *other, *at = a, *in;
    size_t len, n = 0, m = 0, other_len;
    while ((len = next_part(&at, &part)) != 0) {
        bool found = false;
        n++;
        for (in = b; !found && (other_len = next_part(&in, &other)) != 0;)
            found = other_len == len && strncasecmp(part, other, len) == 0;
        if (!found)
            return false;
    }
    for (in = b; next_part(&in, &other) != 0;)
        m++;
    return n == m && n != 0;
}

/* What a name asks for: of libfabric's providers, one of its fabrics, one kind of endpoints. */
struct meant {
    char provider[64];
    const char *fabric; /* NULL: any */
    enum fi_ep_type type;
};

/* "efa-direct" is a fabric of provider efa, "NAME-msg" the connected endpoints of provider NAME;
 * every other name is a provider. */
static struct meant meaning(const char *name)
{
    struct meant m = {.type = FI_EP_RDM};
    size_t len = strlen(name);
    snprintf(m.provider, sizeof(m.provider), "%s", name);
    if (len > 4 && len < sizeof(m.provider) && strcasecmp(name + len - 4, "-msg") == 0) {
        m.provider[len - 4] = 0;
        m.type = FI_EP_MSG;
    } else if (strcasecmp(name, "efa-direct") == 0) {
        strcpy(m.provider, "efa");
        m.fabric = "efa-direct";
    } else if (strcasecmp(name, "efa") == 0) {
        m.fabric = "efa";
    }
    return m;
}

static struct fi_info *hints_for(const char *name, const struct gi_ofi_rung *r)
{
    struct fi_info *h = fi_allocinfo();
    struct meant m = meaning(name);
    uint64_t order = FI_ORDER_WAW | FI_ORDER_RMA_WAW | (r->behind ? FI_ORDER_SAW : 0);
    if (h == NULL)
        return NULL;
    h->fabric_attr->prov_name = strdup(m.provider); /* all freed by fi_freeinfo() */
    h->fabric_attr->name = m.fabric != NULL ? strdup(m.fabric) : NULL;
    h->caps = FI_MSG | FI_RMA | (r->atomic ? FI_ATOMIC : 0) | (r->source ? FI_SOURCE : 0) |
              (r->hmem ? FI_HMEM : 0);
    h->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    h->ep_attr->type = m.type;
    h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                              (m.type == FI_EP_RDM ? FI_MR_ENDPOINT : 0) |
                              (r->hmem ? FI_MR_HMEM : 0);
    h->domain_attr->threading = FI_THREAD_SAFE;
    h->domain_attr->av_type = m.type == FI_EP_RDM ? FI_AV_TABLE : FI_AV_UNSPEC;
    h->tx_attr->msg_order = h->rx_attr->msg_order = r->order ? order : 0;
    return h;
}

/* Less is better: a network interface that others reach, with the shorter address. */
static int rank_info(const struct fi_info *i)
{
    const struct sockaddr_in *in = i->src_addr;
    if (i->addr_format == FI_SOCKADDR_IN && in != NULL)
        return (ntohl(in->sin_addr.s_addr) >> 24 == 127) ? 2 : 0;
    if (i->addr_format == FI_SOCKADDR_IN6 && i->src_addr != NULL) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)i->src_addr)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(a) ? 3 : IN6_IS_ADDR_LINKLOCAL(a) ? 4 : 1;
    }
    return 0;
}

/* Why a name is not had. */
struct reason {
    char text[160];
};

static void because(struct reason *why, const char *text)
{
    snprintf(why->text, sizeof(why->text), "%s", text);
}

/* One more of a list, unless it stands there. */
static void add_word(char *list, size_t n, const char *word)
{
    size_t len = strlen(list), wordlen = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += wordlen)
        if ((at == list || at[-1] == ' ') && (at[wordlen] == 0 || at[wordlen] == ','))
            return;
    if (len + wordlen + 3 <= n)
        snprintf(list + len, n - len, "%s%s", len != 0 ? ", " : "", word);
}

/*
 * The device that was named, also by its name without what some providers append for the kind of
 * endpoint ("rdmap0-rdm"). Providers over IP do not look at a name among the hints: so this does.
 */
static bool is_device(const char *domain, const char *nic)
{
    size_t len = nic != NULL ? strlen(nic) : 0;
    return len == 0 || (strncmp(domain, nic, len) == 0 && (domain[len] == 0 || domain[len] == '-'));
}

/* The entry to take out of what came back; NULL and the reason where none will do. */
static const struct fi_info *best_of(const struct fi_info *list, const char *name, const char *nic,
                                     struct gi_ofi_tried *tried, struct reason *why)
{
    const struct fi_info *best = NULL;
    struct meant m = meaning(name);
    char devices[100] = "", answers[100] = "";
    because(why, "libfabric has it with other endpoints");
    for (const struct fi_info *i = list; i != NULL; i = i->next) {
        if (!gi_ofi_same_name(i->fabric_attr->prov_name, m.provider)) {
            add_word(answers, sizeof(answers), i->fabric_attr->prov_name);
            if (devices[0] == 0)
                snprintf(why->text, sizeof(why->text), "libfabric has it as %s alone", answers);
            continue;
        }
        if (i->ep_attr->type != m.type)
            continue;
        if (m.fabric != NULL && strcasecmp(i->fabric_attr->name, m.fabric) != 0)
            continue;
        add_word(devices, sizeof(devices), i->domain_attr->name);
        add_word(tried->devices, sizeof(tried->devices), i->domain_attr->name);
        if (!is_device(i->domain_attr->name, nic)) {
            snprintf(why->text, sizeof(why->text), "its devices are %s", devices);
            continue;
        }
        if (i->domain_attr->mr_mode & FI_MR_RAW) {
            because(why, "its keys are longer than 8 bytes (FI_MR_RAW)");
            continue;
        }
        if (best == NULL || rank_info(i) < rank_info(best))
            best = i;
    }
    return best;
}

static int ask(const char *provider, const char *nic, const struct gi_ofi_rung *r,
               struct fi_info **info, struct gi_ofi_tried *tried, struct reason *why)
{
    struct fi_info *list = NULL, *hints = hints_for(provider, r);
    if (hints == NULL)
        return -FI_ENOMEM;
    int rc = fi_getinfo(gi_ofi_api(), NULL, NULL, 0, hints, &list);
    fi_freeinfo(hints);
    if (rc != 0) {
        because(why, rc == -FI_ENODATA ? "no such provider or no device for it" : fi_strerror(-rc));
        return rc;
    }
    const struct fi_info *best = best_of(list, provider, nic, tried, why);
    if (best != NULL)
        *info = fi_dupinfo(best);
    fi_freeinfo(list);
    return best == NULL ? -FI_ENODATA : *info == NULL ? -FI_ENOMEM : 0;
}

static bool has_device_atomics(const char *provider)
{
    for (size_t i = 0; i < sizeof(device_atomics) / sizeof(device_atomics[0]); i++)
        if (strcasecmp(device_atomics[i], provider) == 0)
            return true;
    return false;
}

/* From all that is wanted down to messages and RMA alone. */
static int climb(const char *provider, const struct gi_ofi_want *want, struct gi_ofi_pick *pick,
                 struct gi_ofi_tried *tried, struct reason *why)
{
    bool atomic = want->atomics || has_device_atomics(provider);
    bool connected = meaning(provider).type == FI_EP_MSG;
    struct reason first = {""};
    int rc = -FI_ENODATA;
    for (unsigned i = 0; i < 32; i++) {
        struct gi_ofi_rung r = {.hmem = !(i & 16),
                                .order = !(i & 8),
                                .behind = !(i & 4),
                                .source = !(i & 2),
                                .atomic = !(i & 1)};
        if ((r.hmem && !want->hmem) || (r.atomic && !atomic) || (r.behind && !r.order))
            continue;
        if (r.source && connected)
            continue; /* a connection tells its source */
        rc = ask(provider, want->nic, &r, &pick->info, tried, why);
        if (rc == 0) {
            pick->rung = r;
            snprintf(pick->rung_text, sizeof(pick->rung_text), "%s%s%s%s",
                     want->hmem && !r.hmem ? " without GPU memory" : "",
                     r.behind  ? ""
                     : r.order ? " without order of messages behind writes"
                               : " without order",
                     r.source || connected ? "" : " without FI_SOURCE",
                     atomic && !r.atomic ? " without atomics" : "");
            return 0;
        }
        first = first.text[0] == 0 ? *why : first;
    }
    *why = first;
    return rc;
}

static void describe(struct gi_ofi_pick *p)
{
    uint32_t v = p->info->fabric_attr->prov_version;
    snprintf(p->text, sizeof(p->text), "%s%s, domain %s, fabric %s, version %u.%u",
             p->info->fabric_attr->prov_name, p->info->ep_attr->type == FI_EP_MSG ? "-msg" : "",
             p->info->domain_attr->name, p->info->fabric_attr->name, FI_MAJOR(v), FI_MINOR(v));
}

void gi_ofi_tried(struct gi_ofi_tried *t, const char *name, const char *why)
{
    size_t len = strlen(t->text);
    snprintf(t->text + len, sizeof(t->text) - len, "%s%s: %.140s", len != 0 ? "; " : "", name, why);
}

/* Names of which the first may be passed over for the next are no one thing. */
static bool is_one(const char *provider)
{
    return provider != NULL && provider[0] != 0 && strcasecmp(provider, "verbs") != 0;
}

static const char *name_of(const struct gi_ofi_want *want, size_t i)
{
    if (want->provider == NULL || want->provider[0] == 0)
        return want->names != NULL ? want->names[i] : gi_ofi_own(i, want->ranks);
    if (strcasecmp(want->provider, "verbs") == 0)
        return i < 2 ? for_ranks(by_size[i], want->ranks) : NULL;
    if (i == 0)
        return want->provider;
    for (size_t k = 0; i == 1 && k < sizeof(layers) / sizeof(layers[0]); k++)
        if (strcasecmp(layers[k].name, want->provider) == 0)
            return layers[k].layered;
    return NULL;
}

/* One of these names would be had. */
static void try_names(const char *const *names, const struct gi_ofi_want *want, char *list,
                      size_t n)
{
    struct gi_ofi_tried ignored = {.text = ""};
    struct reason why;
    for (; *names != NULL; names++) {
        struct gi_ofi_pick p = {.info = NULL};
        if (climb(*names, want, &p, &ignored, &why) == 0)
            add_word(list, n, *names);
        gi_ofi_unpick(&p);
    }
}

/* What was named is not there: what is? That first, since other ranks are shown the beginning. */
static int none(const struct gi_ofi_want *want, const struct gi_ofi_tried *tried)
{
    bool nic = want->nic != NULL && want->nic[0] != 0;
    char names[200] = "";
    if (nic && tried->devices[0] != 0)
        return gi_fail(GIN_ENOTSUP,
                       "GINSHMEM_NIC=%s: no libfabric provider with messages and RMA has such a "
                       "device here; there are %s (%s)",
                       want->nic, tried->devices, tried->text);
    if (want->provider == NULL || want->provider[0] == 0)
        return gi_fail(GIN_ENOTSUP, "no libfabric provider%s%s has messages and RMA here (%s)",
                       nic ? " with the device GINSHMEM_NIC=" : "", nic ? want->nic : "",
                       tried->text);
    try_names(want->names != NULL ? want->names : own, want, names, sizeof(names));
    try_names(others, want, names, sizeof(names));
    return gi_fail(GIN_ENOTSUP,
                   "GINSHMEM_PROVIDER=%s: no such provider with messages and RMA%s%s here; there "
                   "are %s (%s)",
                   want->provider, nic ? " and the device GINSHMEM_NIC=" : "", nic ? want->nic : "",
                   names[0] != 0 ? names : "none", tried->text);
}

int gi_ofi_pick(const struct gi_ofi_want *want, size_t *at, struct gi_ofi_tried *tried,
                struct gi_ofi_pick *pick)
{
    struct gi_ofi_pick p = {.named = is_one(want->provider)};
    struct reason why = {"nothing was asked"};
    const char *name;
    gi_ofi_environment(want->ranks);
    while ((name = name_of(want, *at)) != NULL) {
        ++*at;
        if (climb(name, want, &p, tried, &why) == 0) {
            p.name = name;
            describe(&p);
            *pick = p;
            return GIN_OK;
        }
        gi_ofi_tried(tried, name, why.text);
    }
    return none(want, tried);
}

void gi_ofi_unpick(struct gi_ofi_pick *pick)
{
    if (pick->info != NULL)
        fi_freeinfo(pick->info);
    pick->info = NULL;
}

struct fi_info *gi_ofi_like(const struct gi_ofi_pick *pick)
{
    struct fi_info *list = NULL, *hints = hints_for(pick->name, &pick->rung);
    if (hints == NULL)
        return NULL;
    if (fi_getinfo(gi_ofi_api(), NULL, NULL, 0, hints, &list) != 0)
        list = NULL;
    fi_freeinfo(hints);
    return list;
}

bool gi_ofi_is_like(const struct gi_ofi_pick *pick, const struct fi_info *info)
{
    struct meant m = meaning(pick->name);
    return gi_ofi_same_name(info->fabric_attr->prov_name, m.provider) &&
           info->ep_attr->type == m.type &&
           (m.fabric == NULL || strcasecmp(info->fabric_attr->name, m.fabric) == 0);
}
