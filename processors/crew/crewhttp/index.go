package crewhttp

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/agent"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/repository"
	"github.com/turntable-streams/turntable/processors/crew/internal/team"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/processors/internal/tableindex"
	"github.com/turntable-streams/turntable/topics"
)

// ErrNotReady is wrapped by errors of an Index that has not read the tables yet, or cannot read them now. It is temporary.
var ErrNotReady = errors.New("crewhttp: the index of crews is not ready")

// Index knows the agents, crews and locks of a catalog: it follows the tables of the three groups and their events, so that
// what it shows is committed, in every process. Run fills it; a Handler reads it and shows its events to WebSocket clients. Its
// methods are safe for concurrent use.
type Index struct {
	catalog topics.Catalog
	config  Config

	follows        *tableindex.Index
	events, tables *tableindex.Source
	catchUp        func(context.Context) error // with the events and the tables: see tableindex.Index
	catchUpRows    func(context.Context) error // with the tables only, for what no event announces
	requests       requestReader
	late           chan struct{} // capacity 1: text waits to be shown

	mu           sync.Mutex
	agents       map[string]*agentRow
	gone         *simplelru.LRU[string, struct{}] // agents that have ended; the oldest is the one that was changed first
	crews        map[string]*team.State
	repositories map[string]*repository.State
	full         bool                  // rows were left out
	announced    *tableindex.Announced // by the door's answers: of an agent that is asked for, or of a crew; by subject, of crews
	streams      *streams
	unshown      []*stream // with text that waits to be shown
	bus          newestMessages
	outcomes     outcomes
	asked        []*asked  // oldest first
	shown        *seen.Log // of whole permission requests
	clients      map[*client]struct{}
	stopped      bool
}

// agentRow is what the index knows of an agent. It is constant but for clean.
type agentRow struct {
	view   view.Agent // without roles' texts and children
	member crewbody.Member
	seq    int64 // of the last event of the row
	// removedMS is when the agent is not shown any more, in Unix milliseconds; 0 for one that is.
	removedMS int64
	once      sync.Once
	clean     view.Agent // view without secrets
}

// shown returns the view of an agent without what looks like a secret. The first call for a row takes long: Index.prepare makes it
// before the lock of the index is taken.
func (r *agentRow) shown() view.Agent {
	r.once.Do(func() {
		a := r.view
		a.OutputPreview, a.Task, a.ExitError = Redact(a.OutputPreview), Redact(a.Task), Redact(a.ExitError)
		a.Plan = redactJSON(a.Plan)
		a.ToolCalls = slices.Clone(a.ToolCalls)
		for i := range a.ToolCalls {
			t := &a.ToolCalls[i]
			t.Title, t.Content = Redact(t.Title), Redact(t.Content)
			t.RawInput, t.RawOutput = redactJSON(t.RawInput), redactJSON(t.RawOutput)
		}
		r.clean = a
	})
	return r.clean
}

// NewIndex returns the index of a catalog's agent, such as "harbor". It opens no connection. The error wraps
// ErrConfig.
func NewIndex(agent string, c Config) (*Index, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	c.complete(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	x := &Index{
		catalog: catalog, config: c, late: make(chan struct{}, 1),
		agents: map[string]*agentRow{}, crews: map[string]*team.State{}, repositories: map[string]*repository.State{},
		announced: tableindex.NewAnnounced(maxAnnounced, rowWait),
		streams:   &streams{limits: c.History, text: c.TextBuffer, bySubject: map[string]*stream{}, used: list.New()}, clients: map[*client]struct{}{},
		shown: seen.NewLog(), outcomes: outcomes{byID: map[string]outcome{}, waiting: map[string]map[chan outcome]struct{}{}},
	}
	x.gone, _ = simplelru.NewLRU[string, struct{}](c.RowLimit, nil) // its only error is a size of 0
	over := make(chan struct{})
	p := &past{index: x, over: over, end: sync.OnceFunc(func() { close(over) })}
	x.events = &tableindex.Source{Topics: []string{catalog.CrewEvents.Name()}, Handle: p.onEvent, New: true, Then: p.read}
	x.tables = &tableindex.Source{Topics: x.tableTopics(), Handle: x.onRow}
	x.follows = tableindex.New(ErrConfig, ErrNotReady, x.events, x.tables)
	x.follows.Stop, x.requests = x.stop, x.tables
	x.catchUp, x.catchUpRows = x.follows.CatchUp, x.tables.CatchUp
	return x, nil
}

// Ready returns a channel that is closed once the index has read all rows that were committed when Run connected, and the
// events of the last time (Config.History). Before, a Handler answers with 503.
func (x *Index) Ready() <-chan struct{} { return x.follows.Ready }

// room reports whether there is room for a new row. It forgets an agent that has ended if it must.
func (x *Index) room() bool {
	if len(x.agents)+len(x.crews)+len(x.repositories) < x.config.RowLimit {
		return true
	}
	if id, _, ok := x.gone.RemoveOldest(); ok {
		delete(x.agents, id)
		return true
	}
	if !x.full {
		x.full = true
		x.config.Logger.Error("crew door has too many rows: new ones are not visible", zap.Int("limit", x.config.RowLimit))
	}
	return false
}

// setAgent replaces the row of an agent; nil removes it.
func (x *Index) setAgent(id string, r *agentRow) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.announced.Read(mailbox.Agent(id))
	x.gone.Remove(id)
	delete(x.agents, id)
	if r == nil || !x.room() {
		return
	}
	if view.Ended(r.view.Status) {
		x.gone.Add(id, struct{}{})
	}
	x.agents[id] = r
}

// setCrew replaces the row of a crew, and setRepository that of a repository; nil removes it.
func (x *Index) setCrew(id string, s *team.State) { setRow(x, x.crews, id, mailbox.Crew(id), s) }

func (x *Index) setRepository(name string, s *repository.State) {
	setRow(x, x.repositories, name, mailbox.Repository(name), s)
}

func setRow[R any](x *Index, in map[string]*R, key, subject string, row *R) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.announced.Read(subject)
	delete(in, key)
	if row != nil && x.room() {
		in[key] = row
	}
}

// crewOf returns the crew of an event, empty if it belongs to none. The caller holds the lock.
func (x *Index) crewOf(e *event) string {
	if e.CrewID != "" {
		return e.CrewID
	}
	if id, ok := strings.CutPrefix(e.Subject, mailbox.OfCrew); ok {
		return id
	}
	if r := x.agents[e.about]; r != nil {
		return r.view.CrewID
	}
	return ""
}

// projectOf returns the project of an event, empty if it belongs to none. The caller holds the lock.
func (x *Index) projectOf(e *event) string {
	if e.ProjectID != "" {
		return e.ProjectID
	}
	if r := x.agents[e.about]; r != nil && r.view.ProjectID != "" {
		return r.view.ProjectID
	}
	return x.crews[x.crewOf(e)].GetRoster().GetProjectId()
}

// apply shows an event to the clients. Repeats have no effect.
func (x *Index) apply(in topics.CrewEvent) {
	e := eventOf(x.linked(in))
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.streams.add(e)
	if s == nil {
		return
	}
	if x.follows.IsReady() { // what is replayed is old
		s.applied = x.config.Clock.Now()
	}
	if e.Type == spawnErrorEvent && e.about != "" { // the agent does not come into being
		x.announced.Read(mailbox.Agent(e.about))
	}
	if e.Type == textEvent {
		x.delay(s, e)
		return
	}
	if e.about != "" {
		if about := x.streams.bySubject[mailbox.Agent(e.about)]; about != nil {
			x.showText(about)
		}
	}
	x.note(e)
	crew, project := x.crewOf(e), x.projectOf(e)
	for c := range x.clients {
		if c.wants(crew, project) {
			c.show(e.frame)
		}
	}
}

// tableTopics are the topics of the three tables: of agents, crews and repositories.
func (x *Index) tableTopics() []string {
	return []string{
		string(goka.GroupTable(x.catalog.CrewAgentsGroup())), string(goka.GroupTable(x.catalog.CrewsGroup())),
		string(goka.GroupTable(x.catalog.CrewRepositoriesGroup())),
	}
}

// onRow is called for each record of a table. A row that cannot be decoded is not shown until it is written again.
func (x *Index) onRow(r processors.Inbound) {
	key, tables := string(r.Key), x.tableTopics()
	var err error
	switch r.Topic {
	case tables[0]:
		err = readRow(agent.Table, r.Value, func(s *agent.State) { x.setAgent(key, x.agentRowOf(key, s)) })
	case tables[1]:
		err = readRow(team.Table, r.Value, func(s *team.State) { x.setCrew(key, s) })
	case tables[2]:
		err = readRow(repository.Table, r.Value, func(s *repository.State) { x.setRepository(key, s) })
	}
	if err != nil {
		x.config.Logger.Error("crew door cannot read a row, and shows the one before it", zap.String("topic", r.Topic),
			zap.Int32("partition", r.Partition), zap.Int64("offset", r.Offset), zap.String("key", key), zap.Error(err))
	}
}

// readRow passes a row to set, nil for none.
func readRow[R rows.Message](t rows.Table[R], raw []byte, set func(R)) (err error) {
	var row R
	if raw != nil {
		if row, err = t.Unmarshal(raw); err != nil {
			return err
		}
	}
	set(row)
	return nil
}

// agentRowOf returns what the index keeps of an agent's row; nil for a row without an agent.
func (x *Index) agentRowOf(key string, s *agent.State) *agentRow {
	if s.GetMember() == nil {
		return nil
	}
	m := agent.MemberOf(s)
	m.AgentID, m.Root, m.Below = key, "", ""
	return &agentRow{view: x.linkedView(agent.View(key, s)), seq: s.GetMailbox().GetSeq(), removedMS: s.RemovedMs, member: m}
}
