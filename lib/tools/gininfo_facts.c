/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of facts, as text for people and as JSON for programs. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "lib/tools/gininfo.h"

#if GI_HAVE_JANSSON
#include <jansson.h>
#endif

static struct info_fact *first, **last = &first;

static const char *state_word(enum info_state s)
{
    switch (s) {
    case INFO_YES: return "yes";
    case INFO_NO: return "no";
    case INFO_UNKNOWN: return "not known";
    case INFO_PASS: return "pass";
    case INFO_FAIL: return "FAIL";
    case INFO_MISSING: return "missing";
    default: return NULL;
    }
}

static void *need(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "gininfo: no memory\n");
        exit(1);
    }
    return p;
}

struct info_fact *info_add(const char *section, const char *name, enum info_state state,
                           const char *value, const char *why, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, why);
    vsnprintf(text, sizeof(text), why, ap);
    va_end(ap);
    struct info_fact *f = need(calloc(1, sizeof(*f)));
    f->section = section;
    f->name = need(strdup(name));
    f->state = state;
    f->value = value != NULL ? need(strdup(value)) : NULL;
    f->why = text[0] != 0 ? need(strdup(text)) : NULL;
    *last = f;
    last = &f->next;
    return f;
}

static struct info_cell *next_cell(struct info_fact *f, const char *key)
{
    if (f->cells == NULL)
        f->cells = need(calloc(INFO_CELLS, sizeof(*f->cells)));
    struct info_cell *c = &f->cells[f->n_cells < INFO_CELLS ? f->n_cells++ : INFO_CELLS - 1];
    c->key = key;
    return c;
}

void info_cell(struct info_fact *f, const char *key, const char *text)
{
    struct info_cell *c = next_cell(f, key);
    snprintf(c->text, sizeof(c->text), "%s", text);
}

void info_cell_number(struct info_fact *f, const char *key, double value)
{
    struct info_cell *c = next_cell(f, key);
    c->number = true;
    if (value >= 0)
        snprintf(c->text, sizeof(c->text), "%.3f", value);
}

void info_free(void)
{
    while (first != NULL) {
        struct info_fact *f = first;
        first = f->next;
        free(f->name);
        free(f->value);
        free(f->why);
        free(f->def);
        free(f->cells);
        free(f);
    }
    last = &first;
}

/* Width of the names of a section. */
static int width(const struct info_fact *f)
{
    const char *section = f->section;
    size_t w = 12;
    for (; f != NULL; f = f->next)
        if (strcmp(f->section, section) == 0 && strlen(f->name) > w)
            w = strlen(f->name);
    return (int)w;
}

/* Width of a column. */
static int column(const struct info_fact *f, int i)
{
    const char *section = f->section;
    size_t w = strlen(f->cells[i].key);
    for (; f != NULL; f = f->next)
        if (strcmp(f->section, section) == 0 && i < f->n_cells && strlen(f->cells[i].text) > w)
            w = strlen(f->cells[i].text);
    return (int)w;
}

/* The first fact with cells of a section brings the line of their keys; widths are kept from it. */
static void print_cells(FILE *out, const struct info_fact *f, int w)
{
    static const char *section;
    static int widths[INFO_CELLS];
    if (section == NULL || strcmp(section, f->section) != 0) {
        section = f->section;
        fprintf(out, "  %-*s", w, "");
        for (int i = 0; i < f->n_cells; i++) {
            widths[i] = column(f, i);
            fprintf(out, "  %*s", f->cells[i].number ? widths[i] : -widths[i], f->cells[i].key);
        }
        fputc('\n', out);
    }
    fprintf(out, "  %-*s", w, f->name);
    for (int i = 0; i < f->n_cells; i++)
        fprintf(out, "  %*s", f->cells[i].number ? widths[i] : -widths[i],
                f->cells[i].text[0] != 0 ? f->cells[i].text : "-");
    fprintf(out, "%s%s\n", f->why != NULL ? "  " : "", f->why != NULL ? f->why : "");
}

static void print_fact(FILE *out, const struct info_fact *f, int w)
{
    if (f->n_cells != 0) {
        print_cells(out, f, w);
        return;
    }
    const char *state = state_word(f->state);
    fprintf(out, "  %-*s", w, f->name);
    if (state != NULL)
        fprintf(out, "  %s", state);
    if (f->value != NULL)
        fprintf(out, "  %s", f->value[0] != 0 ? f->value : "none");
    if (f->origin != NULL && f->def != NULL && strcmp(f->origin, "default") != 0)
        fprintf(out, "  (%s; default %s)", f->origin, f->def[0] != 0 ? f->def : "none");
    else if (f->origin != NULL)
        fprintf(out, "  (%s)", f->origin);
    if (f->why != NULL)
        fprintf(out, "%s%s", state != NULL || f->value != NULL ? ": " : "  ", f->why);
    fputc('\n', out);
}

void info_print_text(FILE *out)
{
    const char *section = NULL;
    int w = 0;
    for (const struct info_fact *f = first; f != NULL; f = f->next) {
        if (section == NULL || strcmp(section, f->section) != 0) {
            fprintf(out, "%s%s\n", section != NULL ? "\n" : "", f->section);
            section = f->section;
            w = width(f);
        }
        print_fact(out, f, w);
    }
}

#if GI_HAVE_JANSSON
static void set_text(json_t *o, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(o, key, json_string(text));
}

int info_print_json(FILE *out)
{
    json_t *all = json_object();
    for (const struct info_fact *f = first; f != NULL; f = f->next) {
        json_t *section = json_object_get(all, f->section), *o = json_object();
        if (section == NULL) {
            section = json_object();
            json_object_set_new(all, f->section, section);
        }
        set_text(o, "state", state_word(f->state));
        set_text(o, "value", f->value);
        set_text(o, "default", f->def);
        set_text(o, "origin", f->origin);
        set_text(o, "text", f->why);
        for (int i = 0; i < f->n_cells; i++) {
            const struct info_cell *c = &f->cells[i];
            if (c->text[0] != 0)
                json_object_set_new(
                    o, c->key, c->number ? json_real(strtod(c->text, NULL)) : json_string(c->text));
        }
        json_object_set_new(section, f->name, o);
    }
    int rc = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
    fputc('\n', out);
    json_decref(all);
    return rc != 0;
}
#else
int info_print_json(FILE *out)
{
    (void)out;
    fprintf(stderr, "gininfo: built without jansson, which --json needs\n");
    return 1;
}
#endif
