package entrance

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/auth"
)

// Config is the configuration of an Entrance.
type Config struct {
	// Door is complete: see Complete. Its Authenticate is nil for a door that accepts everyone, and for one that admits callers by
	// tokens of its own (Tokens).
	auth.Door
	// Name and Agent are those of audit events.
	Name, Agent string
	// Tokens says that the door calls Admit, after it has checked a token or a signature that no browser adds to a request.
	Tokens bool
	// Sockets says that Origins are patterns of path.Match for a host or for scheme://host, which the upgrade of the connection
	// checks.
	Sockets bool
	// Media are the content types of bodies. Nil: JSON; AnyMedia: all.
	Media []string
	// Defaults are the limits of the door that differ from those of others.
	Defaults auth.Limits
	// CORS is what browsers let the pages of Origins do.
	CORS CORS
}

// Entrance admits the requests of a door. It is safe for concurrent use.
type Entrance struct {
	config   Config
	pages    pages
	headers  string // of requests of pages, for CORS
	slots    chan struct{}
	callers  *limiter
	sessions *limiter
	bodies   *budget
	arrivals *arrivals
	failures *Failures
}

// New returns the entrance of a door. It tells check what is wrong with the origins and the limits; the entrance is then not usable.
func New(check *bounds.Check, c Config) *Entrance {
	pages := newPages(check, c)
	defaults, err := c.Defaults.Or(defaultLimits(c.BodyLimit))
	if err == nil {
		c.Limits, err = c.Limits.Or(defaults)
	}
	if err == nil && int64(c.Limits.CallerBodyBytes) <= c.BodyLimit {
		err = fmt.Errorf("%w: CallerBodyBytes is %d, want more than BodyLimit, %d", auth.ErrLimits, c.Limits.CallerBodyBytes, c.BodyLimit)
	}
	if err != nil {
		check.Wrong("Limits", "cannot be used: %w", err)
	}
	if c.Audit == nil {
		c.Audit = auth.LogAudit(c.Logger)
	}
	headers := slices.Concat([]string{"Content-Type"}, c.CORS.Headers, c.Headers)
	return &Entrance{
		config: c, pages: pages, headers: strings.Join(headers, ", "), slots: make(chan struct{}, max(c.Concurrency, 1)),
		callers:  newLimiter(c.Limits.Caller, c.Limits.Keys),
		sessions: newLimiter(c.Limits.Session, c.Limits.Keys),
		bodies:   newBudget(c.Limits.BodyBytes, c.Limits.CallerBodyBytes),
		arrivals: newArrivals(), failures: NewFailures(max(c.Limits.Keys, 1)),
	}
}

// Len returns the number of open requests.
func (e *Entrance) Len() int { return len(e.slots) }

// Visit is one request at an Entrance. One goroutine uses it.
type Visit struct {
	// Caller is set by Authenticate and Admit.
	Caller auth.Caller

	entrance *Entrance
	r        *http.Request
	wire     *http.ResponseController
	slot     bool
	caller   string // key of its limits; empty until it is known
	entered  bool   // counts as an open request of the caller
	address  string
	session  string // empty until it has entered
	bytes    int    // of the budget
	received bool   // the body was received to its end

	arriving  *list.Element // in arrivals; nil if the visit cannot be displaced
	displaced bool
}

// Open checks the headers of a request and what page it is from, and takes a slot. It sets the headers of CORS. The caller calls Close
// for every visit, also for a refused one.
func (e *Entrance) Open(w http.ResponseWriter, r *http.Request) (*Visit, *Refusal) {
	e.setCORS(w, r)
	v := &Visit{entrance: e, r: r, wire: http.NewResponseController(w), address: Address(r.RemoteAddr)}
	v.received = r.Body == nil || r.Body == http.NoBody
	v.deadline(e.config.Limits.BodyIdle)
	if refusal := checkHeaders(r); refusal != nil {
		return v, refusal
	}
	if refusal := e.pages.check(r); refusal != nil {
		return v, v.Refuse(refusal)
	}
	for {
		select {
		case e.slots <- struct{}{}:
			v.slot = true
			return v, nil
		default:
			if !e.arrivals.displace("", v) {
				return v, busy("Too many requests at a time")
			}
		}
	}
}

// Authenticate identifies the caller, and checks that it has the rights and is within its limits.
func (v *Visit) Authenticate(needed auth.Rights) *Refusal {
	a := v.entrance.config.Authenticate
	if a == nil {
		return v.Admit(auth.Caller{})
	}
	if refusal := v.Suspect(); refusal != nil {
		return refusal
	}
	caller, err := a(v.r)
	refusal := &Refusal{Status: http.StatusUnauthorized, Text: "Unauthorized", Cause: err}
	switch {
	case errors.Is(err, auth.ErrNoCredential) && !hasCredential(v.r): // it tries none
		return v.Refuse(refusal)
	case err != nil:
		return v.Fail(caller.Name(), refusal)
	}
	v.Caller = caller
	switch {
	case caller.Ended(v.entrance.config.Clock.Now()):
		return v.Refuse(&Refusal{Status: http.StatusUnauthorized, Text: "Unauthorized"})
	case !caller.Can(needed):
		return v.Refuse(&Refusal{Status: http.StatusForbidden, Text: "Forbidden"})
	}
	if refusal := v.Accept(caller.Name()); refusal != nil {
		return refusal
	}
	return v.Admit(caller)
}

// Admit checks the limits of a caller that the door has authenticated.
func (v *Visit) Admit(c auth.Caller) *Refusal {
	v.Caller = c
	key := "caller " + c.Name()
	if c.Name() == "" {
		key = "address " + v.address
	}
	callers := v.entrance.callers
	for {
		wait := callers.enter(key, v.entrance.config.Clock.Now())
		if wait == 0 {
			break
		}
		if !callers.full(key) || !v.entrance.arrivals.displace(key, v) {
			return v.Refuse(tooMany("Too many requests", wait))
		}
	}
	v.caller, v.entered = key, true
	if v.received {
		v.endDeadline()
	}
	return nil
}

// Session checks a session's ID, the caller's right to use it, and the limits of the session. A visit has one session at a
// time: the next one ends the one before.
func (v *Visit) Session(id string) *Refusal {
	if err := CheckSession(id); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Text: err.Error()}
	}
	if !v.Caller.Allowed(id) {
		return v.Refuse(&Refusal{Status: http.StatusForbidden, Text: "Forbidden"})
	}
	v.leaveSession()
	if wait := v.entrance.sessions.enter(id, v.entrance.config.Clock.Now()); wait > 0 {
		return v.Refuse(tooMany("Too many requests of the session", wait))
	}
	v.session = id
	return nil
}

func (v *Visit) leaveSession() {
	if v.session != "" {
		v.entrance.sessions.leave(v.session)
		v.session = ""
	}
}

// Key identifies the caller in limits: its name, or its address.
func (v *Visit) Key() string { return v.caller }

// Refuse records a refused request and returns the refusal. Only 401, 403 and 429 are recorded.
func (v *Visit) Refuse(refusal *Refusal) *Refusal {
	switch refusal.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		v.record(auth.AuditEvent{Action: auth.AuditRefuse, Status: refusal.Status, Reason: refusal.Text, RequestID: requestID(v.r)})
	}
	return refusal
}

// Record records what the request did.
func (v *Visit) Record(a auth.AuditAction, session, request string, status int) {
	v.record(auth.AuditEvent{Action: a, Session: session, RequestID: request, Status: status})
}

func (v *Visit) record(e auth.AuditEvent) {
	c := v.entrance.config
	e.At, e.Door, e.Agent, e.Subject, e.Address = c.Clock.Now(), c.Name, c.Agent, v.Caller.Name(), v.address
	c.Audit(e)
}

// Close frees what the visit occupies. A body that was not received is dropped: the client gets a short time to send the
// rest, so that it reads the answer.
func (v *Visit) Close() {
	v.arrived()
	if !v.received {
		_ = v.wire.SetReadDeadline(time.Now().Add(lingering))
	}
	v.entrance.arrivals.mu.Lock()
	defer v.entrance.arrivals.mu.Unlock()
	v.free()
}

// free gives back what the visit occupies. It may be called again.
func (v *Visit) free() {
	v.leaveSession()
	if v.bytes > 0 {
		v.entrance.bodies.give(v.caller, v.bytes)
		v.bytes = 0
	}
	if v.entered {
		v.entrance.callers.leave(v.caller)
		v.entered = false
	}
	if v.slot {
		<-v.entrance.slots
		v.slot = false
	}
}

// ipv6Prefix is how many bits of an IPv6 address identify a client: a client has a network of addresses.
const ipv6Prefix = 64

// Address is the IP address in the remote address of a request, or all of it if it has none.
func Address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		p, _ := ip.Prefix(ipv6Prefix)
		return p.String()
	}
	return ip.String()
}

// requestID is the request's ID in audit events of refused requests: from X-Request-Id or Traceparent, if it is printable.
func requestID(r *http.Request) string {
	for _, name := range []string{"X-Request-Id", "Traceparent"} {
		if id := r.Header.Get(name); id != "" && len(id) <= 128 &&
			!slices.ContainsFunc([]byte(id), func(b byte) bool { return b <= ' ' || b > '~' }) {
			return id
		}
	}
	return ""
}

// endDeadline removes the deadline, which would otherwise end the request's context: the server reads on to learn that the
// client has disconnected.
func (v *Visit) endDeadline() { _ = v.wire.SetReadDeadline(time.Time{}) }
