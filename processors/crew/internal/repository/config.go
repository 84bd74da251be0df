package repository

import (
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

// Table is the format of the row of a repository.
var Table = mailbox.Table[*State]("crew repository", nil)

// Group returns the group "{name}-crew-repositories": the locks and commits of all repositories, in one row per repository. name is
// that of the catalog.
func Group(name string, c Config) (mailbox.Group[*State], error) {
	if err := c.complete(); err != nil {
		return mailbox.Group[*State]{}, err
	}
	return mailbox.NewGroup(name, mailbox.OfRepository, Table, c.apply)
}

// Config has what users can set. crew.Config describes the fields.
type Config struct {
	LockTTL time.Duration
}

func (c *Config) complete() error {
	var check bounds.Check
	bounds.Between(&check, "LockTTL", &c.LockTTL, 5*time.Minute, minTTL, maxTTL)
	return check.Err(mailbox.ErrConfig)
}
