package agent

import (
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

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
