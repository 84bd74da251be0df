package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/memoir/latency"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// Console is the web console of an agent, an http.Handler. Use New; Run fills it. Its methods are safe for concurrent use.
type Console struct {
	catalog  topics.Catalog
	to       processors.Publisher
	config   Config
	entrance *entrance.Entrance
	follower *follower
	hints    *hints
	lags     lags
	routes   map[string]route
	pages    *pages

	mu        sync.Mutex
	brokers   []string            // set by Run
	options   []processors.Option // set by Run
	requeuing chan struct{}       // has an element while dead letters are requeued
}

// New returns the console of the agent whose topics the catalog has: that of agent.Agent.Topics, or of topics.For with the options of
// the capabilities that the agent has. Records about actions are written to the publisher. Its error wraps ErrConfig.
func New(catalog topics.Catalog, to processors.Publisher, c Config) (*Console, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	var check bounds.Check
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	if catalog.Agent == "" {
		check.Wrong("catalog", "is empty")
	}
	e := entrance.New(&check, entrance.Config{
		Door: c.Door, Name: "console", Agent: catalog.Agent, Media: []string{"application/x-www-form-urlencoded"},
		Defaults: auth.Limits{Caller: auth.Share{Open: 32}},
	})
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	entrance.WarnOpen(c.Door, catalog.Agent,
		"console is open: requests are not authenticated and may read every session, with its texts; they may change nothing")
	h := newHints()
	x := &Console{requeuing: make(chan struct{}, 1), catalog: catalog, to: to, config: c, entrance: e, hints: h, follower: newFollower(catalog, &c, h)}
	x.routes, x.pages = x.allRoutes(), parsePages(c.Root)
	return x, nil
}

// For is New for package processors/agent: agent.Config.Console can be a Config. The console authenticates callers as the door does, unless
// the Config says how, and has its Logger unless the Config has one.
func (c Config) For(
	door auth.Door, catalog topics.Catalog, to processors.Publisher, groups map[goka.Group]*processors.Processor,
	topology processors.Topology, budgets turn.Budgets,
) (root string, h http.Handler, run func(context.Context, []string, ...processors.Option) error, err error) {
	if c.Authenticate == nil && !c.Open {
		c.Authenticate, c.Open = door.Authenticate, door.Open
	}
	if c.Logger == nil {
		c.Logger = door.Logger
	}
	c.Processors, c.Topology, c.Budgets = groups, topology, budgets
	x, err := New(catalog, to, c)
	if err != nil {
		return "", nil, nil, err
	}
	return x.Root(), x, x.Run, nil
}

// Run reads the topics until ctx ends and then returns nil. It reads committed records only, and belongs to no consumer group. It waits
// for brokers that are unavailable and for topics that do not exist. opts are the connection options of processors.New. Run may be
// called once. A second call, and invalid options, return errors that wrap ErrConfig.
func (c *Console) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	opts = append([]processors.Option{processors.WithLogger(c.config.Logger)}, opts...)
	c.mu.Lock()
	c.brokers, c.options = brokers, opts
	c.mu.Unlock()
	also := []func(context.Context){c.follower.check, c.follower.readBack, c.follower.forgetLetters, c.readLags}
	if c.follower.created[string(goka.GroupTable(c.catalog.LatenciesGroup()))] {
		t, err := latency.Follow(brokers, c.catalog.Agent, opts...)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
		c.follower.latencies.Store(t)
		also = append(also, func(ctx context.Context) { _ = t.Run(ctx) })
	}
	return c.follower.follows.Run(ctx, brokers, c.config.Logger, opts, also...)
}

// Ready returns a channel that is closed once the console has read all that was committed when Run connected. Before, its pages say
// that they are incomplete.
func (c *Console) Ready() <-chan struct{} { return c.follower.follows.Ready }

// Root is the path at which the console is served, with a slash at its end.
func (c *Console) Root() string { return c.config.Root + "/" }

//go:embed static
var static embed.FS

// policy lets a page use scripts and styles of the console only, and no other site. Nothing is inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler. It answers paths that are not below Config.Root with 404.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, c.config.Root)
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	switch {
	case !ok || path != "" && path[0] != '/':
		http.NotFound(w, r)
		return
	case path == "":
		http.Redirect(w, r, c.config.Root+"/", http.StatusSeeOther)
		return
	case strings.HasPrefix(path, "/static/"):
		header.Set("Cache-Control", "max-age=86400, immutable") // their address has their digest
		http.ServeFileFS(w, r, static, path[1:])
		return
	}
	rt, known := c.routes[r.Method+" "+path]
	if r.Method == http.MethodHead {
		rt, known = c.routes["GET "+path]
	}
	v, refusal := c.entrance.Open(w, r)
	defer v.Close()
	if refusal == nil {
		withPassword(r)
		refusal = v.Authenticate(auth.Read)
	}
	if refusal != nil {
		c.refuse(w, r, refusal)
		return
	}
	if !known {
		c.fail(w, r, v, http.StatusNotFound, "There is no such page.")
		return
	}
	if path == "/changes" {
		c.stream(w, v, r)
		return
	}
	rt(&request{Request: r, Visit: v, w: w, console: c, now: c.config.Clock.Now()})
}

// withPassword passes the password that a browser has asked for as a bearer token.
func withPassword(r *http.Request) {
	if _, password, ok := r.BasicAuth(); ok {
		r.Header.Set("Authorization", "Bearer "+password)
	}
}

// refuse answers a refused request as text: the caller may not see anything of the console.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, refusal *entrance.Refusal) {
	refusal.SetHeader(w.Header())
	if refusal.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="Turntable console", charset="UTF-8"`)
	}
	http.Error(w, refusal.Text, refusal.Status)
}

// route serves a page or an action.
type route func(*request)

// request is a request that has passed the door.
type request struct {
	*http.Request
	*entrance.Visit
	w       http.ResponseWriter
	console *Console
	now     time.Time
}

// can reports whether the caller may do what needs a right.
func (r *request) can(right auth.Rights) bool {
	c := r.console.config
	return (c.Authenticate != nil || c.Open) && r.Caller.Can(right)
}

// everything reports whether the caller may use all sessions.
func (r *request) everything() bool { return r.Caller.MayUse == nil || r.Caller.MayUse(anySession()) }

// by is who acts, for records.
func (r *request) by() string {
	if name := r.Caller.Name(); name != "" {
		return name
	}
	return "anonymous at " + entrance.Address(r.RemoteAddr)
}

// errGone says that a row is not there any more.
var errGone = errors.New("console: the row is gone")
