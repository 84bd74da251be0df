package agent

import (
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/permission"
	"github.com/turntable-streams/turntable/topics"
)

// agent is the application of one input to a row.
type agent struct {
	*State
	config Config
	step   *mailbox.Step
	in     topics.CrewInput
	// forgotten says that the row is dropped.
	forgotten bool
}

const reasonLong = "the input has an ID or a name that is too long: it has no effect"

// apply is the Apply of the group.
func (c Config) apply(row *State, in topics.CrewInput, step *mailbox.Step) (deadlineMS int64, keep bool) {
	a := &agent{State: row, config: c, step: step, in: in}
	step.CrewID, step.ProjectID = row.Member.GetCrewId(), row.Member.GetProjectId()
	handlers.Handle(step, a, in, "coding agents do not know this kind of input: it has no effect",
		"the body of the input cannot be decoded: it has no effect")
	if row.Member == nil || a.forgotten {
		return 0, false
	}
	a.tell()
	return a.deadline(), true
}

// handlers apply the inputs that an agent knows.
var handlers = mailbox.Handlers[*agent]{}

func init() {
	mailbox.On(handlers, (*agent).spawn)
	mailbox.On(handlers, (*agent).due)

	known((*agent).prompt)
	known((*agent).note)
	known((*agent).refresh)
	known((*agent).interrupt)
	known((*agent).clearQueue)
	known((*agent).pause)
	known((*agent).setAutopilot)
	known((*agent).setTask)
	known((*agent).terminate)
	known((*agent).restart)
	known((*agent).gateEnded)

	known((*agent).hostStarted)
	known((*agent).receipt)
	ofRun(func(b crewbody.HostBeat) string { return b.Run }, (*agent).beat)
	ofRun(func(b crewbody.Started) string { return b.Run }, (*agent).started)
	ofRun(func(b crewbody.SessionReady) string { return b.Run }, (*agent).sessionReady)
	ofRun(func(b crewbody.StartFailed) string { return b.Run }, (*agent).startFailed)
	ofRun(func(b crewbody.Updates) string { return b.Run }, (*agent).updates)
	ofRun(func(b crewbody.Permission) string { return b.Run }, (*agent).permission)
	ofRun(func(b crewbody.TurnEnded) string { return b.Run }, (*agent).turnEnded)
	ofRun(func(b crewbody.Problem) string { return b.Run }, (*agent).problem)
	ofRun(func(b crewbody.Exited) string { return b.Run }, (*agent).exited)
}

// known adds the handler of an input that has no effect on an agent that was never spawned.
func known[T crewbody.Body](do func(*agent, T)) {
	mailbox.On(handlers, func(a *agent, body T) {
		if a.Member != nil {
			do(a, body)
		}
	})
}

// ofRun adds the handler of what a host says about a process. It has no effect if the process is not the current one.
func ofRun[T crewbody.Body](run func(T) string, do func(*agent, T)) {
	known(func(a *agent, body T) {
		p := a.Process
		if p == nil || p.Run != run(body) {
			return
		}
		a.heardHost()
		if epoch := a.epoch(); epoch != 0 {
			if p.Epoch != 0 && epoch > p.Epoch {
				// The later of two hosts that began at the same time did the action, too. Its process has another session.
				a.hostStarted(crewbody.HostStarted{Host: a.Member.Host, Epoch: epoch})
				return
			}
			p.Epoch = epoch
			a.HostEpoch = max(a.HostEpoch, epoch)
		}
		do(a, body)
	})
}

// epoch is the run of the host that wrote the input, 0 if no host did.
func (a *agent) epoch() int64 {
	if !strings.HasPrefix(a.in.From, mailbox.OfHost) {
		return 0
	}
	return a.in.Number / mailbox.PerEpoch
}

func (a *agent) id() string { return a.Member.AgentId }

func (a *agent) crew() string { return mailbox.Crew(a.Member.CrewId) }

// heard is the number of the last input of the crew.
func (a *agent) heard() int64 { return a.Mailbox.Heard[a.crew()] }

// knew is the number of the last input of the crew that the process can know of.
func (a *agent) knew() int64 {
	if a.Turn != nil {
		return a.Turn.Heard
	}
	return a.heard()
}

// do has the agent's host do something with the current process.
func (a *agent) do(body crewbody.Body) {
	a.step.Do(a.Member.Host, a.Process.Epoch, body)
}

// asked are the agent's permission requests.
func (a *agent) asked() *permission.Permissions {
	if a.Permissions == nil {
		a.Permissions = &permission.Permissions{}
	}
	return a.Permissions
}

// who says to package permission whose requests these are. There is a process.
func (a *agent) who() permission.Who {
	return permission.Who{
		Member: a.member(), Run: a.Process.Run, Epoch: a.Process.Epoch, Timeout: a.config.PermissionTimeout,
	}
}

func (a *agent) member() crewbody.Member { return MemberOf(a.State) }

// MemberOf says who an agent is. The row has an agent.
func MemberOf(s *State) crewbody.Member {
	m := s.Member
	return crewbody.Member{
		AgentID: m.AgentId, CrewID: m.CrewId, ProjectID: m.ProjectId, RoleID: m.RoleId, RoleName: m.RoleName, Model: m.Model,
		Provider: m.Provider, Host: m.Host, Cwd: m.Cwd, Repository: m.Repository,
		Root: m.Root, Below: m.Below,
	}
}

// Table is the format of the row of an agent. Rows hold texts of agents and people.
var Table = mailbox.Table[*State]("crew agent", nil)

// Group returns the group "{name}-crew-agents": the coding agents of all crews, in one row per agent. name is that of the catalog.
func Group(name string, c Config) (mailbox.Group[*State], error) {
	if err := c.complete(); err != nil {
		return mailbox.Group[*State]{}, err
	}
	return mailbox.NewGroup(name, mailbox.OfAgent, Table, c.apply)
}

// Config has what users can set. crew.Config describes the fields.
type Config struct {
	PermissionTimeout, HungAfter, RestartDelay time.Duration
}

const (
	// startTimeout is how long a host may take for its first answer to a crewbody.Start.
	startTimeout = time.Minute
	// hostTimeout is how long a host may be silent while it has the agent's process. It writes a beat every 10 seconds.
	hostTimeout = 45 * time.Second
	// mostDoublings is how often the time until a host is asked again doubles: to about an hour.
	mostDoublings = 6
	// shownFor is how long an agent is shown after its end, and keptFor how long its row is kept after that.
	shownFor = 30 * time.Second
	keptFor  = 7 * 24 * time.Hour
	// activeEvery is how often the repository is told that the agent works.
	activeEvery = time.Minute
	// idleAfter is how long an agent has nothing to do until clients and the crew are told.
	idleAfter = 500 * time.Millisecond
	// answerTimeout is how long an agent that has nothing else to do waits for the answer to a command, and commitTimeout for that to
	// a COMMIT, which git gives.
	answerTimeout = 30 * time.Second
	commitTimeout = 3 * time.Minute
	// awaitedLimit is the number of commands, the newest, whose answers an agent waits for.
	awaitedLimit = 100
	// restartLimit is the number of crashes that reach the limit unless crewbody.Spawn says another.
	restartLimit = 3
)

func (c *Config) complete() error {
	var check bounds.Check
	bounds.AtLeast(&check, "PermissionTimeout", &c.PermissionTimeout, time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "HungAfter", &c.HungAfter, 5*time.Minute, time.Millisecond)
	bounds.AtLeast(&check, "RestartDelay", &c.RestartDelay, 2*time.Second, time.Millisecond)
	return check.Err(mailbox.ErrConfig)
}
