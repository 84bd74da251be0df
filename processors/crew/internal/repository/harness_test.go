package repository

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// harness applies inputs to the row of one repository. The row is encoded and decoded between two inputs, as in a broker.
type harness struct {
	tb      tb
	group   mailbox.Group[*State]
	key     string
	now     time.Time
	row     []byte
	number  int64
	effects effects // of the last input
}

func newHarness(t tb, config ...Config) *harness {
	var c Config
	if len(config) > 0 {
		c = config[0]
	}
	group, err := Group("quay", c)
	require.NoError(t, err)
	return &harness{tb: t, group: group, key: "harbor", now: time.UnixMilli(1_790_000_000_000).UTC()}
}

// The agents of the tests. The third is of another crew and project.
var (
	mira = member("a1a1a1a1-0000-4000-8000-000000000001", "crew-1", "project-1", "developer", "Developer")
	noor = member("b2b2b2b2-0000-4000-8000-000000000002", "crew-1", "project-1", "reviewer", "Code Reviewer")
	otto = member("c3c3c3c3-0000-4000-8000-000000000003", "crew-2", "project-2", "architect", "Architect")
)

func member(id, crew, project, role, name string) crewbody.Member {
	return crewbody.Member{
		AgentID: id, CrewID: crew, ProjectID: project, RoleID: role, RoleName: name, Host: "dock", Cwd: "/work", Repository: "harbor",
	}
}

// state is the row.
func (h *harness) state() *State {
	h.tb.Helper()
	if h.row == nil {
		return h.group.New()
	}
	s, err := Table.Unmarshal(h.row)
	require.NoError(h.tb, err)
	return s
}

// set replaces the row.
func (h *harness) set(s *State) {
	h.tb.Helper()
	var err error
	h.row, err = Table.Marshal(s)
	require.NoError(h.tb, err)
}

// input returns the next input of a sender.
func (h *harness) input(from string, body crewbody.Body) topics.CrewInput {
	h.number++
	in := topics.CrewInput{
		InputID: fmt.Sprint("input-", h.number), Kind: body.Kind(), From: from, Body: crewbody.Encode(body),
	}
	if from != "" {
		in.Number = h.number
	}
	return in
}

// apply applies an input now and returns its effects.
func (h *harness) apply(in topics.CrewInput) effects {
	h.tb.Helper()
	row := h.state()
	keep, changed, list := h.group.Step(row, h.key, in, h.now, h.now)
	require.True(h.tb, keep)
	if changed {
		raw, err := Table.Marshal(row)
		require.NoError(h.tb, err)
		require.Less(h.tb, len(raw), 512<<10)
		h.row = raw
	}
	h.effects = list
	return h.effects
}

func (h *harness) do(from string, body crewbody.Body) effects {
	h.tb.Helper()
	return h.apply(h.input(from, body))
}

// command applies a command of an agent. The payload is a Go value or nil.
func (h *harness) command(m crewbody.Member, name string, payload any) effects {
	h.tb.Helper()
	var raw topics.Raw
	if payload != nil {
		var err error
		raw, err = json.Marshal(payload)
		require.NoError(h.tb, err)
	}
	return h.do("", crewbody.Command{Member: m, SessionID: "s1", Offset: h.number, Name: name, Payload: raw})
}

func (h *harness) lock(m crewbody.Member, path string) effects {
	h.tb.Helper()
	return h.command(m, "LOCK_FILE", map[string]string{"filePath": path, "reason": "because"})
}

// locked locks paths, which must succeed.
func (h *harness) locked(m crewbody.Member, paths ...string) {
	h.tb.Helper()
	for _, p := range paths {
		require.Len(h.tb, h.lock(m, p).events("lock:acquired"), 1, p)
	}
}

func (h *harness) unlock(m crewbody.Member, path string) effects {
	h.tb.Helper()
	return h.command(m, "UNLOCK_FILE", map[string]string{"filePath": path})
}

func (h *harness) commit(m crewbody.Member, message string, files ...string) effects {
	h.tb.Helper()
	return h.command(m, "COMMIT", map[string]any{"message": message, "files": files})
}

func (h *harness) end(m crewbody.Member) effects {
	h.tb.Helper()
	return h.do(mailbox.Agent(m.AgentID), crewbody.AgentEnded{AgentID: m.AgentID})
}

func (h *harness) receipt(r crewbody.Receipt) effects {
	h.tb.Helper()
	return h.do("host/dock", r)
}

// advance moves the clock by d and applies the deadlines in that time.
func (h *harness) advance(d time.Duration) (all effects) {
	h.tb.Helper()
	end := h.now.Add(d)
	for {
		at, ok := rows.Deadline(h.row)
		if !ok || at > end.UnixMilli() {
			h.now = end
			return all
		}
		h.now = time.UnixMilli(max(at, h.now.UnixMilli())).UTC()
		h.number++
		all = append(all, h.apply(topics.CrewInput{
			InputID: fmt.Sprint("due-", h.number), Kind: crewbody.Due{}.Kind(), Body: crewbody.Encode(crewbody.Due{AtMS: at}),
		})...)
	}
}

// held are the paths that an agent has locked.
func (h *harness) held(m crewbody.Member) (paths []string) {
	for _, l := range Locks(h.key, h.state(), h.now.UnixMilli()) {
		if l.AgentID == m.AgentID {
			paths = append(paths, l.FilePath)
		}
	}
	return paths
}

type effects []mailbox.Effect

// fields are those of an event.
type fields map[string]any

// events returns the fields of the events of a type.
func (e effects) events(kind string) (list []fields) {
	for _, x := range e {
		if h, ok := x.(topics.CrewEvent); ok && h.Type == kind {
			var f fields
			if err := json.Unmarshal(h.Fields, &f); err != nil {
				panic(err)
			}
			list = append(list, f)
		}
	}
	return list
}

// kinds are the types of all events.
func (e effects) kinds() (list []string) {
	for _, x := range e {
		if h, ok := x.(topics.CrewEvent); ok {
			list = append(list, h.Type)
		}
	}
	return list
}

// notes are the texts for an agent, one a line.
func (e effects) notes(m crewbody.Member) string {
	var list []string
	for _, n := range mails[crewbody.Note](e, mailbox.Agent(m.AgentID)) {
		list = append(list, n.Text)
	}
	return strings.Join(list, "\n")
}

// mails returns the inputs of a kind for a subject.
func mails[T crewbody.Body](e effects, to string) (list []T) {
	var kind T
	for _, x := range e {
		if m, ok := x.(mailbox.Mail); ok && m.To == to && m.Input.Kind == kind.Kind() {
			body, err := crewbody.Decode[T](m.Input.Body)
			if err != nil {
				panic(err)
			}
			list = append(list, body)
		}
	}
	return list
}

// actions returns the actions of all kinds.
func (e effects) actions() (list []topics.CrewAction) {
	for _, x := range e {
		if a, ok := x.(topics.CrewAction); ok {
			list = append(list, a)
		}
	}
	return list
}

func actionBody[T crewbody.Body](t tb, a topics.CrewAction) T {
	t.Helper()
	var none T
	require.Equal(t, none.Kind(), a.Kind)
	body, err := crewbody.Decode[T](a.Body)
	require.NoError(t, err)
	return body
}

// letters are the reasons of dead letters.
func (e effects) letters() (list []string) {
	for _, x := range e {
		if l, ok := x.(mailbox.Letter); ok {
			list = append(list, string(l))
		}
	}
	return list
}
