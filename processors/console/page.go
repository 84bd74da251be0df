package console

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

//go:embed templates
var templates embed.FS

// pages are the templates of the pages, by name. Each has the layout.
type pages struct {
	root   string
	byName map[string]*template.Template
}

func parsePages(root string) *pages {
	p := &pages{root: root, byName: map[string]*template.Template{}}
	files, _ := templates.ReadDir("templates") // the embedded files are there
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "layout" {
			continue
		}
		t := template.New("layout.html").Funcs(p.functions())
		p.byName[name] = template.Must(t.ParseFS(templates, "templates/layout.html", "templates/"+f.Name()))
	}
	return p
}

func (p *pages) functions() template.FuncMap {
	return template.FuncMap{
		"url": p.url, "urls": func(page string, parameters []any) string { return p.url(page, parameters...) }, "static": p.static, "anchor": anchor, "dollars": dollars, "count": count, "several": several, "when": when, "duration": func(begin, end int64) string { return (time.Duration(end-begin) * time.Millisecond).String() },
		"sum": func(a, b int) int { return a + b },
		"iso": millis, "lines": linesOf,
		"deliveryid": func(session, id string) string { return url.QueryEscape(session) + " " + id },
		"name":       visible,
		"link": func(session string, list ...string) sessionLink {
			return sessionLink{session, anchor("s", append(list, session)...)}
		},
	}
}

// sessionLink is a link to a session. Anchor is the ID of its element, which differs in each list of a page.
type sessionLink struct{ Session, Anchor string }

// part is a list of a page, with what its template needs of the page.
type part struct {
	List any
	Now  time.Time
	Act  bool // with the buttons of actions
}

func linesOf(list any, p page, act bool) part { return part{list, p.Now, act && p.CanOperate} }

// url returns the address of a page with parameters, given as alternating names and values.
func (p *pages) url(page string, parameters ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if value := fmt.Sprint(parameters[i+1]); value != "" {
			q.Set(fmt.Sprint(parameters[i]), value)
		}
	}
	if len(q) == 0 {
		return p.root + page
	}
	return p.root + page + "?" + q.Encode()
}

// static returns the address of a file, which changes with the file.
func (p *pages) static(name string) string {
	raw, err := static.ReadFile("static/" + name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return p.root + "/static/" + name + "?v=" + hex.EncodeToString(sum[:6])
}

// anchor returns the ID of an element about something. IDs of sessions and gates can have any characters.
func anchor(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "-" + hex.EncodeToString(sum[:8])
}

func dollars(v any) string {
	switch v := v.(type) {
	case *float64:
		if v != nil {
			return fmt.Sprintf("$%.4f", *v)
		}
	case float64:
		return fmt.Sprintf("$%.4f", v)
	}
	return "not known"
}

// count writes a number with a comma between thousands.
func count(v any) string {
	digits := fmt.Sprint(v)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// moment is a time for people.
type moment struct{ ISO, Text string }

// when writes a time in Unix milliseconds: how long ago, and the clock time in UTC. 0 is no time.
func when(ms int64, now time.Time) moment {
	if ms == 0 {
		return moment{}
	}
	at := time.UnixMilli(ms).UTC()
	clock := at.Format("15:04:05")
	if at.Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		clock = at.Format("2006-01-02 15:04:05")
	}
	if d := at.Sub(now); d > 0 {
		return moment{topics.Timestamp(at), fmt.Sprintf("%s (in %s)", clock, rough(d))}
	}
	return moment{topics.Timestamp(at), fmt.Sprintf("%s (%s ago)", clock, rough(now.Sub(at)))}
}

// rough writes a duration in its largest unit.
func rough(d time.Duration) string {
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}} {
		if d >= unit.of {
			return fmt.Sprintf("%d %s", d/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// page is what the layout shows.
type page struct {
	Agent, Title, Section string
	// About is what the page shows: it is asked for again when that changes. Empty for pages that stay as they are.
	About string
	// Address is that of the page, and Notices say what is not known.
	Address string
	Notices []string
	// Said is the outcome of an action, and Failed says that it had none.
	Said                          string
	Failed                        bool
	User                          string
	CanDecide, CanOperate, CanAll bool
	ReadOnly                      bool
	Now                           time.Time
	HasGates, HasDeliveries       bool
	Costs, Crews                  bool
	Body                          any
}

// show writes a page.
func (r *request) show(status int, name string, p page) {
	c := r.console
	p.Agent, p.Now, p.User = c.catalog.Agent, r.now, r.Caller.Name()
	p.CanDecide, p.CanOperate, p.CanAll = r.can(auth.Answer), r.can(auth.Control), r.everything()
	p.ReadOnly = c.config.Authenticate == nil && !c.config.Open
	p.HasGates, p.HasDeliveries = c.catalog.GateRequests.Spec().Created, c.catalog.Deliveries.Spec().Created
	p.Costs = c.catalog.Spending.Spec().Created || c.follower.latencies.Load() != nil
	p.Crews = c.config.Crews != nil
	p.Notices = append(c.notices(r.now), p.Notices...)
	p.Address = c.config.Root + strings.TrimPrefix(r.URL.Path, c.config.Root)
	q := r.URL.Query()
	if len(q) > 0 {
		p.Address += "?" + q.Encode()
	}
	if p.Said == "" {
		p.Said, p.Failed = r.saidAt(p.Address)
	}
	var b bytes.Buffer
	if err := c.pages.byName[name].Execute(&b, p); err != nil {
		c.config.Logger.Error("console cannot write a page", zap.String("page", name), zap.Error(err))
		http.Error(r.w, "Internal server error", http.StatusInternalServerError)
		return
	}
	r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	r.w.WriteHeader(status)
	_, _ = r.w.Write(b.Bytes()) // an error means that the client has disconnected
}

// notices say what the console does not know.
func (c *Console) notices(now time.Time) (list []string) {
	f := c.follower
	if !f.follows.IsReady() {
		list = append(list, "The tables are still being read: lists and numbers are incomplete.")
	}
	if at, err := f.fresh(); err != nil && !at.IsZero() {
		list = append(list, fmt.Sprintf("The brokers do not answer: what is shown was read at %s.", when(at.UnixMilli(), now).Text))
	} else if err != nil && f.follows.IsReady() {
		list = append(list, "The brokers do not answer: what is shown may be old.")
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if f.index.forgotten {
		list = append(list, fmt.Sprintf("There are more than %s sessions: idle ones that changed the longest time ago are not listed.",
			count(c.config.SessionLimit)))
	}
	if n := len(f.index.broken); n > 0 {
		list = append(list, fmt.Sprintf("%s rows cannot be decoded and are missing: a newer build may have written them.", count(n)))
	}
	for kind, at := range f.index.full {
		list = append(list, fmt.Sprintf("There were too many %s at %s: some are missing in lists. The pages of their sessions show them.",
			kind, when(at.UnixMilli(), now).Text))
	}
	return list
}

// fail writes a page that says what is wrong.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, v *entrance.Visit, status int, text string) {
	x := &request{Request: r, Visit: v, w: w, console: c, now: c.config.Clock.Now()}
	x.fail(status, text)
}

func (r *request) fail(status int, text string) {
	r.show(status, "message", page{Title: http.StatusText(status), Body: text})
}

const (
	// saidCookie has the outcome of the last action. So a page has it again when it is refreshed, and no link can claim it.
	saidCookie = "turntable_console_said"
	// saidFor is how many seconds a page shows the outcome.
	saidFor = 60
)

// to redirects to a page after an action, which shows its outcome for a while. said is one of the sayings.
func (r *request) to(said, target string, parameters ...any) {
	address := r.console.pages.url(target, parameters...)
	if said != "" {
		http.SetCookie(r.w, &http.Cookie{
			Name: saidCookie, Value: anchor(said, address), Path: r.console.Root(), MaxAge: saidFor, HttpOnly: true, Secure: r.TLS != nil,
			SameSite: http.SameSiteStrictMode,
		})
	}
	http.Redirect(r.w, r.Request, address, http.StatusSeeOther)
}

// saidAt returns the outcome of the last action if its page is that of an address.
func (r *request) saidAt(address string) (text string, failed bool) {
	c, err := r.Cookie(saidCookie)
	if err != nil {
		return "", false
	}
	said, _, _ := strings.Cut(c.Value, "-")
	if c.Value != anchor(said, address) {
		return "", false
	}
	return saying(said)
}

// masked returns a text that the caller has asked to see, after Config.Mask. JSON is indented.
func (r *request) masked(kind, session string, value []byte) string {
	shown := string(value)
	if v := jsontext.Value(slices.Clone(value)); len(v) > 0 && (v[0] == '{' || v[0] == '[') {
		if v.Indent(jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil {
			shown = string(v)
		}
	}
	return visible(r.console.config.Mask(Payload{kind, session, shown}))
}

// visible replaces characters that hide or reorder text.
func visible(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && hidden(c) {
			return '\ufffd'
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// hidden reports whether a character is a control or format character, such as those that change the direction of text. All of them
// have at most 16 bits.
func hidden(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c >= 0x200b && c <= 0x200f || c >= 0x2028 && c <= 0x202e || c >= 0x2060 && c <= 0x206f || c == 0xfeff
}

// anySession is the ID of a session that does not exist.
func anySession() string { return rand.Text() }

// first returns the first value of a form.
func (r *request) first(name string) string { return r.URL.Query().Get(name) }
