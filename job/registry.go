package job

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Args are the arguments of a job; their type names its kind.
type Args interface{ Kind() string }

// Handler runs jobs of a kind. What it returns decides about the job, see the package.
type Handler interface {
	HandleJob(ctx context.Context, j *Job) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, j *Job) error

// HandleJob calls f.
func (f HandlerFunc) HandleJob(ctx context.Context, j *Job) error { return f(ctx, j) }

// Middleware wraps a handler in another, as in net/http.
type Middleware func(Handler) Handler

// Registry maps kinds to handlers. It is safe for concurrent use.
type Registry struct {
	mu         sync.Mutex
	handlers   map[string]Handler
	middleware []Middleware
	built      atomic.Pointer[map[string]Handler] // handlers wrapped in middleware; nil after a change
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{handlers: make(map[string]Handler)} }

// Use wraps every handler, registered before or after, in mw; what is used first is outermost.
func (r *Registry) Use(mw ...Middleware) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.middleware = append(r.middleware, mw...)
	r.built.Store(nil)
}

// Handle registers the handler of a kind, inside mw, whose first is outermost. It
// panics if the kind is empty or taken or the handler nil: that is a mistake in the program.
func (r *Registry) Handle(kind string, h Handler, mw ...Middleware) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case strings.TrimSpace(kind) == "":
		panic("job: Handle with an empty kind")
	case h == nil:
		panic(fmt.Sprintf("job: the handler of kind %q is nil", kind))
	case r.handlers[kind] != nil:
		panic(fmt.Sprintf("job: kind %q has a handler already", kind))
	}
	r.handlers[kind] = wrap(h, mw)
	r.built.Store(nil)
}

func wrap(h Handler, mw []Middleware) Handler {
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return h
}

// Handle registers a typed handler: arguments are decoded by [Envelope.Bind] into a new A
// for each job. Arguments that do not fit are a failed attempt like another, since
// the next deployment may understand them.
func Handle[A Args](r *Registry, fn func(ctx context.Context, args A) error, mw ...Middleware) {
	if fn == nil {
		panic(fmt.Sprintf("job: the handler of %v is nil", reflect.TypeFor[A]()))
	}
	var h HandlerFunc = func(ctx context.Context, j *Job) error {
		args := newArgs[A]()
		if err := j.Bind(pointerTo(&args)); err != nil {
			return err
		}
		return fn(ctx, args)
	}
	r.Handle(newArgs[A]().Kind(), h, mw...)
}

// newArgs returns the zero A, or if A is a pointer, one to a zero value.
func newArgs[A Args]() (args A) {
	if t := reflect.TypeFor[A](); t.Kind() == reflect.Pointer {
		args, _ = reflect.New(t.Elem()).Interface().(A) // it is A by construction
	}
	return args
}

// pointerTo returns args itself if that is a pointer already.
func pointerTo[A Args](args *A) any {
	if reflect.TypeFor[A]().Kind() == reflect.Pointer {
		return *args
	}
	return args
}

// Lookup returns the handler of a kind, within all middleware.
func (r *Registry) Lookup(kind string) (Handler, bool) {
	built := r.built.Load()
	if built == nil {
		built = r.build()
	}
	h, ok := (*built)[kind]
	return h, ok
}

func (r *Registry) build() *map[string]Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	built := make(map[string]Handler, len(r.handlers))
	for kind, h := range r.handlers {
		built[kind] = wrap(h, r.middleware)
	}
	r.built.Store(&built)
	return &built
}

// Kinds returns the registered kinds, sorted.
func (r *Registry) Kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

// UnknownKindError is the failed attempt of a job whose kind has no handler.
type UnknownKindError struct {
	Kind  string
	Kinds []string // those that have one
}

func (e *UnknownKindError) Error() string {
	if len(e.Kinds) == 0 {
		return fmt.Sprintf("no handler for kind %q: none is registered", e.Kind)
	}
	return fmt.Sprintf("no handler for kind %q: register one, or correct the kind; registered are %s", e.Kind, strings.Join(e.Kinds, ", "))
}
