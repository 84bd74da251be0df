package repository

import (
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
)

// Config has what users can set. crew.Config describes the fields.
type Config struct {
	LockTTL time.Duration
}

func (c *Config) complete() error {
	var check bounds.Check
	bounds.Between(&check, "LockTTL", &c.LockTTL, 5*time.Minute, minTTL, maxTTL)
	return check.Err(mailbox.ErrConfig)
}
