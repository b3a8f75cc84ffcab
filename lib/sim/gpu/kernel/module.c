/* Modules, libraries, functions, the JIT linker. */
#include "sim/gpu/texture/texref.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_func *sim_func_add(struct sim_module *m, const char *name, size_t len)
{
	struct sim_func *f = calloc(1, sizeof(*f));
	f->magic = SIM_MAGIC_FUNC;
	f->name = strndup(name, len);
	f->mod = m;
	f->nparams = -1;
	f->max_threads = 1024;
	f->rule = -2;
	f->block[0] = f->block[1] = f->block[2] = 1;
	struct sim_func **p = &m->funcs;
	while (*p)
		p = &(*p)->next;
	*p = f;
	return f;
}

struct sim_var *sim_var_add(struct sim_module *m, const char *name, size_t len, size_t size)
{
	struct sim_var *v = calloc(1, sizeof(*v));
	v->name = strndup(name, len);
	v->size = size;
	v->next = m->vars;
	m->vars = v;
	return v;
}

enum { FATBIN = 0xba55ed50, FATBIN_WRAPPER = 0x466243b1, FAT_PTX = 1, FAT_ELF = 2 };

struct fat_entry {
	uint16_t kind, attr;
	uint32_t header;
	uint64_t size;
	uint32_t compressed, pad;
	uint16_t minor, major;
	uint32_t arch, name_off, name_len;
	uint64_t flags;
};

static void scan_text(struct sim_module *m, const char *text, size_t n)
{
	m->text = strndup(text, n);
	sim_ptx_scan(m);
}

static void scan_fat(struct sim_module *m, const unsigned char *p)
{
	enum { HEADER = 16, COMPRESSED = 0x2000 | 0x8000 };
	uint64_t size;
	m->opaque = true;
	memcpy(&size, p + 8, 8);
	const unsigned char *at = p + HEADER, *end = at + size;
	while (at + sizeof(struct fat_entry) <= end && m->opaque) {
		struct fat_entry e;
		memcpy(&e, at, sizeof(e));
		if (!(e.flags & COMPRESSED)) {
			if (e.kind == FAT_ELF)
				sim_elf_scan(m, at + e.header);
			else if (e.kind == FAT_PTX) {
				scan_text(m, (const char *)at + e.header, e.size);
				m->opaque = false;
			}
		}
		at += e.header + e.size;
	}
}

static CUresult module_new(const void *image, struct sim_module **out)
{
	uint32_t magic;
	if (!image || !out)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&magic, image, 4);
	struct sim_module *m = calloc(1, sizeof(*m));
	m->magic = SIM_MAGIC_MODULE;
	m->ctx = sim_ctx_current();
	if (magic == FATBIN_WRAPPER) {
		const void *inner;
		memcpy(&inner, (const char *)image + 8, sizeof(inner));
		scan_fat(m, inner);
	} else if (magic == FATBIN) {
		scan_fat(m, image);
	} else if (!memcmp(image, "\177ELF", 4)) {
		sim_elf_scan(m, image);
	} else if (strstr(image, ".version")) {
		scan_text(m, image, strlen(image));
	} else {
		free(m);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (sim_cfg.module_load_ns)
		sim_sleep_until(sim_now() + sim_cfg.module_load_ns);
	*out = m;
	return CUDA_SUCCESS;
}

static bool is_module(const struct sim_module *m)
{
	return m && m->magic == SIM_MAGIC_MODULE;
}

static CUresult load_data(struct sim_call *c, CUmodule *out, const void *image)
{
	(void)c;
	return module_new(image, out);
}

static CUresult load_data_ex(struct sim_call *c, CUmodule *out, const void *image, unsigned n,
			     const int *options, void **values)
{
	(void)n;
	(void)options;
	(void)values;
	return load_data(c, out, image);
}

static char *read_all(const char *path)
{
	FILE *f = path ? fopen(path, "re") : NULL;
	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	size_t most = n < 0 ? 0 : (size_t)n;
	char *text = calloc(1, most + 8);
	text[fread(text, 1, most, f)] = '\0';
	fclose(f);
	return text;
}

static CUresult load_file(struct sim_call *c, CUmodule *out, const char *path)
{
	char *text = read_all(path);
	if (!text)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult r = load_data(c, out, text);
	free(text);
	return r;
}

static CUresult unload(struct sim_call *c, CUmodule m)
{
	(void)c;
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	/* Loaded without a context: its kernels may run in any, so it is not freed. */
	if (!m->ctx) {
		m->magic = 0;
		return CUDA_SUCCESS;
	}
	sim_ctx_drain(m->ctx);
	sim_texrefs_drop(m);
	m->magic = 0;
	for (struct sim_var *v = m->vars, *next; v; v = next) {
		next = v->next;
		if (v->mem)
			sim_mem_release(v->mem, false);
		free(v->name);
		free(v);
	}
	for (struct sim_func *f = m->funcs, *next; f; f = next) {
		next = f->next;
		f->magic = 0;
		ptx_free(f->prog);
		for (int i = 0; i < f->nparams; i++)
			free(f->params[i].name);
		free(f->params);
		free(f->name);
		free(f->legacy_args);
		free(f);
	}
	free(m->text);
	free(m);
	return CUDA_SUCCESS;
}

static CUresult get_function(struct sim_call *c, CUfunction *out, CUmodule m, const char *name)
{
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	c->kernel = name;
	for (struct sim_func *f = m->funcs; f; f = f->next) {
		if (!strcmp(f->name, name)) {
			*out = f;
			return CUDA_SUCCESS;
		}
	}
	if (!m->opaque)
		return CUDA_ERROR_NOT_FOUND;
	*out = sim_func_add(m, name, strlen(name));
	return CUDA_SUCCESS;
}

/* Whether the text declares name with .attribute(.managed). */
static bool is_managed(const struct sim_module *m, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = m->text ? strstr(m->text, ".managed") : NULL; p;
	     p = strstr(p + 1, ".managed")) {
		const char *end = p + strcspn(p, ";={[");
		while (end > p && isspace((unsigned char)end[-1]))
			end--;
		if ((size_t)(end - p) > n && !memcmp(end - n, name, n) &&
		    isspace((unsigned char)end[-(long)n - 1]))
			return true;
	}
	return false;
}

static CUresult var_memory(const struct sim_module *m, struct sim_var *v, bool low)
{
	struct sim_ctx *ctx = m->ctx ? m->ctx : sim_ctx_current();
	struct sim_call quiet = {0};
	bool managed = is_managed(m, v->name);
	struct sim_range want = {.kind = managed ? SIM_M_MANAGED : SIM_M_DEVICE,
				 .ctx = ctx,
				 .dev = ctx ? ctx->dev : &sim_dev[0],
				 .charged = !managed,
				 .owner = SIM_OWN_OBJECT};
	return v->mem ? CUDA_SUCCESS
		      : sim_mem_new(&quiet, &want, v->size ? v->size : 1, low, &v->mem);
}

static CUresult find_var(CUdeviceptr *p, size_t *n, struct sim_module *m, const char *name,
			 bool low)
{
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct sim_var *v = m->vars; v; v = v->next) {
		if (strcmp(v->name, name))
			continue;
		CUresult r = var_memory(m, v, low);
		if (r)
			return r;
		if (p)
			*p = (uintptr_t)v->mem;
		if (n)
			*n = v->size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_global(struct sim_call *c, CUdeviceptr *p, size_t *n, CUmodule m,
			   const char *name)
{
	(void)c;
	return find_var(p, n, m, name, false);
}

/* The pointer has 32 bits: an already allocated variable may be out of reach. */
static CUresult get_global_v1(struct sim_call *c, uint32_t *p, unsigned *n, CUmodule m,
			      const char *name)
{
	CUdeviceptr at = 0;
	size_t size = 0;
	(void)c;
	CUresult r = find_var(&at, &size, m, name, true);
	if (!r && p && at > UINT32_MAX)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && p)
		*p = (uint32_t)at;
	if (!r && n)
		*n = (unsigned)size;
	return r;
}

static CUresult get_managed(struct sim_call *c, CUdeviceptr *p, size_t *n, CUlibrary m,
			    const char *name)
{
	if (is_module(m) && name && !is_managed(m, name))
		return CUDA_ERROR_NOT_FOUND;
	return get_global(c, p, n, m, name);
}

/* No loadable image has host code. */
static CUresult unified_function(struct sim_call *c, void **out, CUlibrary m, const char *name)
{
	(void)c;
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	return out && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

static CUresult loading_mode(struct sim_call *c, int *mode)
{
	(void)c;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = 1; /* eager */
	return CUDA_SUCCESS;
}

static CUresult function_count(struct sim_call *c, unsigned *n, CUmodule m)
{
	(void)c;
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*n = 0;
	for (struct sim_func *f = m->funcs; f; f = f->next)
		++*n;
	return CUDA_SUCCESS;
}

static CUresult enumerate(struct sim_call *c, CUfunction *out, unsigned n, CUmodule m)
{
	(void)c;
	if (!is_module(m))
		return CUDA_ERROR_INVALID_HANDLE;
	if (n && !out)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct sim_func *f = m->funcs; f && n; f = f->next, n--)
		*out++ = f;
	return CUDA_SUCCESS;
}

/* ---- libraries: modules by another name ---- */
static CUresult library_load(struct sim_call *c, CUlibrary *out, const void *code, const int *jo,
			     void **jv, unsigned nj, const int *lo, void **lv, unsigned nl)
{
	(void)jo;
	(void)jv;
	(void)nj;
	(void)lo;
	(void)lv;
	(void)nl;
	return load_data(c, out, code);
}

static CUresult library_file(struct sim_call *c, CUlibrary *out, const char *path, const int *jo,
			     void **jv, unsigned nj, const int *lo, void **lv, unsigned nl)
{
	(void)jo;
	(void)jv;
	(void)nj;
	(void)lo;
	(void)lv;
	(void)nl;
	return load_file(c, out, path);
}

static CUresult library_module(struct sim_call *c, CUmodule *out, CUlibrary lib)
{
	(void)c;
	if (!is_module(lib))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = lib;
	return CUDA_SUCCESS;
}

static CUresult kernel_function(struct sim_call *c, CUfunction *out, CUkernel k)
{
	(void)c;
	if (!k || k->magic != SIM_MAGIC_FUNC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = k;
	return CUDA_SUCCESS;
}

/* ---- JIT linker: the linked image is the PTX text put together ---- */
struct sim_link {
	int magic;
	char *text;
	size_t n;
};

static CUresult link_create(struct sim_call *c, unsigned n, const int *options, void **values,
			    CUlinkState *out)
{
	(void)c;
	(void)n;
	(void)options;
	(void)values;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = calloc(1, sizeof(**out));
	(*out)->magic = SIM_MAGIC_LINK;
	return CUDA_SUCCESS;
}

enum { INPUT_PTX = 1 };

static CUresult link_data(struct sim_call *c, CUlinkState s, int type, const char *data, size_t n,
			  const char *name, unsigned no, const int *options, void **values)
{
	(void)name;
	(void)no;
	(void)options;
	(void)values;
	if (!s || s->magic != SIM_MAGIC_LINK)
		return CUDA_ERROR_INVALID_HANDLE;
	c->bytes = n;
	if (type != INPUT_PTX)
		return CUDA_SUCCESS;
	n = strnlen(data, n);
	s->text = realloc(s->text, s->n + n + 2);
	memcpy(s->text + s->n, data, n);
	s->n += n;
	s->text[s->n++] = '\n';
	s->text[s->n] = 0;
	return CUDA_SUCCESS;
}

static CUresult link_file(struct sim_call *c, CUlinkState s, int type, const char *path,
			  unsigned no, const int *options, void **values)
{
	char *text = read_all(path);
	if (!text)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult r = link_data(c, s, type, text, strlen(text), path, no, options, values);
	free(text);
	return r;
}

static CUresult link_complete(struct sim_call *c, CUlinkState s, void **image, size_t *n)
{
	(void)c;
	if (!s || s->magic != SIM_MAGIC_LINK)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!s->text)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (sim_cfg.module_load_ns)
		sim_sleep_until(sim_now() + sim_cfg.module_load_ns);
	*image = s->text;
	if (n)
		*n = s->n + 1;
	return CUDA_SUCCESS;
}

static CUresult link_destroy(struct sim_call *c, CUlinkState s)
{
	(void)c;
	if (!s || s->magic != SIM_MAGIC_LINK)
		return CUDA_ERROR_INVALID_HANDLE;
	free(s->text);
	free(s);
	return CUDA_SUCCESS;
}

SIM_API(cuModuleLoad, SIM_NEED_CTX, load_file, (CUmodule * m, const char *path), (m, path))
SIM_API(cuModuleLoadData, SIM_NEED_CTX, load_data, (CUmodule * m, const void *image), (m, image))
SIM_API(cuModuleLoadFatBinary, SIM_NEED_CTX, load_data, (CUmodule * m, const void *image),
	(m, image))
SIM_API(cuModuleLoadDataEx, SIM_NEED_CTX, load_data_ex,
	(CUmodule * m, const void *image, unsigned n, const int *o, void **v), (m, image, n, o, v))
SIM_API(cuModuleUnload, SIM_NEED_INIT, unload, (CUmodule m), (m))
SIM_API(cuModuleGetFunction, SIM_NEED_CTX, get_function,
	(CUfunction * f, CUmodule m, const char *name), (f, m, name))
SIM_API(cuModuleGetGlobal_v2, SIM_NEED_CTX, get_global,
	(CUdeviceptr * p, size_t *n, CUmodule m, const char *name), (p, n, m, name))
SIM_API(cuModuleGetGlobal, SIM_NEED_CTX, get_global_v1,
	(uint32_t * p, unsigned *n, CUmodule m, const char *name), (p, n, m, name))
SIM_API(cuLibraryGetManaged, SIM_NEED_INIT, get_managed,
	(CUdeviceptr * p, size_t *n, CUlibrary l, const char *name), (p, n, l, name))
SIM_API(cuLibraryGetUnifiedFunction, SIM_NEED_INIT, unified_function,
	(void **f, CUlibrary l, const char *name), (f, l, name))
SIM_API(cuModuleGetLoadingMode, SIM_NEED_NONE, loading_mode, (int *mode), (mode))
SIM_API(cuModuleGetFunctionCount, SIM_NEED_INIT, function_count, (unsigned *n, CUmodule m), (n, m))
SIM_API(cuModuleEnumerateFunctions, SIM_NEED_INIT, enumerate,
	(CUfunction * f, unsigned n, CUmodule m), (f, n, m))
SIM_API(cuLibraryLoadData, SIM_NEED_INIT, library_load,
	(CUlibrary * l, const void *code, const int *jo, void **jv, unsigned nj, const int *lo,
	 void **lv, unsigned nl),
	(l, code, jo, jv, nj, lo, lv, nl))
SIM_API(cuLibraryLoadFromFile, SIM_NEED_INIT, library_file,
	(CUlibrary * l, const char *path, const int *jo, void **jv, unsigned nj, const int *lo,
	 void **lv, unsigned nl),
	(l, path, jo, jv, nj, lo, lv, nl))
SIM_API(cuLibraryUnload, SIM_NEED_INIT, unload, (CUlibrary l), (l))
SIM_API(cuLibraryGetKernel, SIM_NEED_INIT, get_function,
	(CUkernel * k, CUlibrary l, const char *name), (k, l, name))
SIM_API(cuLibraryGetModule, SIM_NEED_CTX, library_module, (CUmodule * m, CUlibrary l), (m, l))
SIM_API(cuLibraryGetGlobal, SIM_NEED_CTX, get_global,
	(CUdeviceptr * p, size_t *n, CUlibrary l, const char *name), (p, n, l, name))
SIM_API(cuLibraryGetKernelCount, SIM_NEED_INIT, function_count, (unsigned *n, CUlibrary l), (n, l))
SIM_API(cuLibraryEnumerateKernels, SIM_NEED_INIT, enumerate,
	(CUkernel * k, unsigned n, CUlibrary l), (k, n, l))
SIM_API(cuKernelGetFunction, SIM_NEED_CTX, kernel_function, (CUfunction * f, CUkernel k), (f, k))
SIM_API(cuLinkCreate, SIM_NEED_CTX, link_create,
	(unsigned n, const int *o, void **v, CUlinkState *s), (n, o, v, s))
SIM_API(cuLinkCreate_v2, SIM_NEED_CTX, link_create,
	(unsigned n, const int *o, void **v, CUlinkState *s), (n, o, v, s))
SIM_API(cuLinkAddData, SIM_NEED_CTX, link_data,
	(CUlinkState s, int type, const char *d, size_t n, const char *name, unsigned no,
	 const int *o, void **v),
	(s, type, d, n, name, no, o, v))
SIM_API(cuLinkAddData_v2, SIM_NEED_CTX, link_data,
	(CUlinkState s, int type, const char *d, size_t n, const char *name, unsigned no,
	 const int *o, void **v),
	(s, type, d, n, name, no, o, v))
SIM_API(cuLinkAddFile, SIM_NEED_CTX, link_file,
	(CUlinkState s, int type, const char *path, unsigned no, const int *o, void **v),
	(s, type, path, no, o, v))
SIM_API(cuLinkAddFile_v2, SIM_NEED_CTX, link_file,
	(CUlinkState s, int type, const char *path, unsigned no, const int *o, void **v),
	(s, type, path, no, o, v))
SIM_API(cuLinkComplete, SIM_NEED_CTX, link_complete, (CUlinkState s, void **image, size_t *n),
	(s, image, n))
SIM_API(cuLinkDestroy, SIM_NEED_INIT, link_destroy, (CUlinkState s), (s))
