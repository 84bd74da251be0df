package crewhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 90 * time.Second

var noon = time.UnixMilli(1_790_000_000_000).UTC()

// rig is a door whose index a test fills.
type rig struct {
	t     *testing.T
	index *Index
	door  *Handler
	http  *httptest.Server
	clock *clock.Fake
	sent  *outbox
	seqs  map[string]int64
}

// outbox is a publisher that keeps records.
type outbox struct {
	mu      sync.Mutex
	records []processors.Outbound
	err     error
}

func (o *outbox) Publish(_ context.Context, records ...processors.Outbound) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.records = append(o.records, records...)
	}
	return o.err
}

func (o *outbox) all() []processors.Outbound {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.records)
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewFake(noon), sent: &outbox{}, seqs: map[string]int64{}}
	c := Config{Door: auth.Door{Clock: r.clock}}
	for _, f := range change {
		f(&c)
	}
	var err error
	r.index, err = NewIndex("harbor", c)
	require.NoError(t, err)
	r.door, err = New(r.index, r.sent, c)
	require.NoError(t, err)
	close(r.index.follows.Ready)
	r.index.catchUp = func(context.Context) error { return nil }
	r.index.catchUpRows = r.index.catchUp
	r.http = httptest.NewServer(r.door)
	t.Cleanup(r.http.Close)
	t.Cleanup(r.index.stop)
	return r
}

// agent adds an agent of a crew.
func (r *rig) agent(id, crew, project string, change ...func(*agentRow)) {
	row := &agentRow{
		view: view.Agent{
			ID: id, CrewID: crew, ProjectID: project, Status: view.Running, Role: topics.CrewRole{ID: "developer"}, ChildIDs: []string{},
			CreatedAt: view.Time(noon.UnixMilli()),
		},
		member: crewbody.Member{AgentID: id, CrewID: crew, ProjectID: project, RoleID: "developer", Repository: "repo"},
	}
	for _, c := range change {
		c(row)
	}
	r.index.setAgent(id, row)
}

// crewFake is what the row of a crew says.
type crewFake struct {
	project   string
	paused    bool
	decisions []view.Decision
	groups    []view.Group
	seq       int64
}

func (c crewFake) row() *team.State {
	s := &team.State{
		Mailbox: &mailbox.Mailbox{Seq: c.seq}, Settings: &team.Settings{Paused: c.paused}, Talk: &talk.Talk{},
		Roster: &roster.Roster{ProjectId: c.project, ProjectName: strings.ToUpper(c.project)},
	}
	for _, d := range c.decisions {
		s.Decisions = append(s.Decisions, &team.Decision{Id: d.ID, Status: d.Status})
	}
	for _, g := range c.groups {
		s.Talk.Rooms = append(s.Talk.Rooms, &talk.Group{Name: g.Name})
	}
	return s
}

// locked is the row of a repository in which an agent of a project has locked a path, if the path is not empty.
func locked(seq int64, path, agent, project string) *repository.State {
	s := &repository.State{Mailbox: &mailbox.Mailbox{Seq: seq}, Agents: []*repository.Agent{{Id: agent, ProjectId: project}}}
	if path != "" {
		s.Locks = []*repository.Lock{{Path: path, AgentId: agent, ExpiresMs: noon.Add(time.Hour).UnixMilli()}}
	}
	return s
}

// event passes an event to the index. fields is JSON.
func (r *rig) event(kind, subject, crew, project, fields string) {
	r.seqs[subject]++
	r.index.apply(topics.CrewEvent{
		Type: kind, Subject: subject, Seq: r.seqs[subject], Version: 1, Cause: "c", CrewID: crew, ProjectID: project,
		AtMS: noon.UnixMilli(), Fields: topics.Raw(fields),
	})
}

func (r *rig) text(agent, text string) {
	r.event("agent:text", "agent/"+agent, "", "", string(entrance.Object("agentId", agent, "text", text)))
}

func (r *rig) status(agent, status string) {
	r.event("agent:status", "agent/"+agent, "", "", string(entrance.Object("agentId", agent, "status", status)))
}

// browser is a WebSocket client.
type browser struct {
	*ws.Conn
	t    *testing.T
	data []string // the frames of the type dataFrame
}

// frame is what a browser received.
type frame struct {
	Type      string       `json:"type"`
	Subject   string       `json:"subject"`
	Seq       int64        `json:"seq"`
	FromSeq   int64        `json:"fromSeq"`
	AgentID   string       `json:"agentId"`
	Text      string       `json:"text"`
	Data      string       `json:"data"`
	Status    string       `json:"status"`
	Message   any          `json:"message"`
	Replayed  int          `json:"replayed"`
	Agents    []view.Agent `json:"agents"`
	Locks     []view.FileLock
	Paused    bool             `json:"systemPaused"`
	Seqs      map[string]int64 `json:"seqs"`
	raw       string
	Dangerous bool `json:"dangerous"`
}

func (r *rig) dial(path string, headers ...string) (*browser, *http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, response, err := ws.Dial(r.t.Context(), "ws"+strings.TrimPrefix(r.http.URL, "http")+path, &ws.DialOptions{HTTPHeader: h, Host: h.Get("Host")})
	if err != nil {
		return nil, response, err
	}
	conn.SetReadLimit(1 << 24)
	b := &browser{Conn: conn, t: r.t}
	r.t.Cleanup(func() { _ = b.CloseNow() })
	return b, response, nil
}

// open connects and returns the browser after its init frame.
func (r *rig) open(headers ...string) (*browser, frame) {
	r.t.Helper()
	b, _, err := r.dial("/ws", headers...)
	require.NoError(r.t, err)
	return b, b.next("init")
}

func (b *browser) send(text string) {
	b.t.Helper()
	require.NoError(b.t, b.Write(b.t.Context(), ws.MessageText, []byte(text)))
}

// read returns the next frame; those with output as it is are kept apart.
func (b *browser) read() (f frame, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	for {
		_, raw, err := b.Read(ctx)
		if err != nil {
			return f, err
		}
		f = frame{raw: string(raw)}
		if err := json.Unmarshal(raw, &f, lenient); err != nil || f.Type != dataFrame {
			return f, err
		}
		b.data = append(b.data, f.raw)
	}
}

// next returns the next frame, which must be of a type.
func (b *browser) next(kind string) frame {
	b.t.Helper()
	f, err := b.read()
	require.NoError(b.t, err)
	require.Equal(b.t, kind, f.Type, f.raw)
	return f
}

// done returns when the door has handled what the browser has sent: it answers frames that are not JSON.
func (b *browser) done() *browser {
	b.t.Helper()
	b.send("?")
	b.next("error")
	return b
}

// closed returns the status with which the door closes the connection, after any frames.
func (b *browser) closed() (ws.StatusCode, string) {
	b.t.Helper()
	for {
		_, err := b.read()
		var closing ws.CloseError
		switch {
		case errors.As(err, &closing):
			return closing.Code, closing.Reason
		case err != nil:
			require.NoError(b.t, err)
		}
	}
}

// callers authenticates the user that a bearer token names: "name.rights.sessions".
func callers(r *http.Request) (auth.Caller, error) {
	token, err := auth.Bearer(r)
	if err != nil {
		return auth.Caller{}, err
	}
	fields := strings.Split(token, ".")
	if len(fields) != 3 {
		return auth.Caller{}, auth.ErrRejected
	}
	rights, err := auth.ParseRights(strings.Split(fields[1], "-")...)
	if err != nil {
		return auth.Caller{}, err
	}
	may := func(crew string) bool { return fields[2] == "all" || strings.HasPrefix(crew, fields[2]) }
	return auth.Caller{UserID: fields[0], Rights: rights, MayUse: may}, nil
}

// got is an answer.
type got struct {
	status int
	body   string
	header http.Header
}

func (r *rig) do(method, path, body string, headers ...string) got {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, r.http.URL+path, strings.NewReader(body))
	require.NoError(r.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := r.http.Client().Do(req)
	require.NoError(r.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return got{resp.StatusCode, string(text), resp.Header}
}

// inputs decodes the inputs that were written to a topic.
func (r *rig) inputs(topic topics.Topic[topics.CrewInput]) (list []topics.CrewInput) {
	r.t.Helper()
	for _, o := range r.sent.all() {
		if o.Topic != topic.Name() {
			continue
		}
		d := topic.Codec().Unmarshal(o.Value)
		require.NoError(r.t, d.Err)
		list = append(list, d.Value)
	}
	return list
}
