package team

import (
	"slices"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// Group returns the group "{name}-crews": all crews, in one row per crew. name is that of the catalog.
func Group(name string, c Config) (mailbox.Group[*State], error) {
	if err := c.complete(); err != nil {
		return mailbox.Group[*State]{}, err
	}
	return mailbox.NewGroup(name, mailbox.OfCrew, Table, c.apply)
}

// Config has what users can set. crew.Config describes the fields.
type Config struct {
	Roles     []topics.CrewRole
	MaxAgents int
}

// maxAgents bounds MaxAgents, and so the row.
const maxAgents = 100

func (c *Config) complete() error {
	var check bounds.Check
	bounds.Between(&check, "MaxAgents", &c.MaxAgents, 50, 1, maxAgents)
	if len(c.Roles) == 0 {
		c.Roles = Roles()
	}
	for i, role := range c.Roles {
		switch {
		case role.ID == "" || role.Name == "" || len(role.ID) > maxName || len(role.Name) > maxName:
			check.Wrong("Roles", "has role %d with an ID or a name that has not 1 to %d bytes", i+1, maxName)
		case len(role.SystemPrompt) > maxRolePrompt:
			check.Wrong("Roles", "has role %q with a prompt of more than %d bytes", role.ID, maxRolePrompt)
		case slices.ContainsFunc(c.Roles[:i], func(o topics.CrewRole) bool { return o.ID == role.ID }):
			check.Wrong("Roles", "has role %q twice", role.ID)
		}
	}
	return check.Err(mailbox.ErrConfig)
}

// role returns the role with an ID.
func (c Config) role(id string) (topics.CrewRole, bool) {
	i := slices.IndexFunc(c.Roles, func(role topics.CrewRole) bool { return role.ID == id })
	if i < 0 {
		return topics.CrewRole{}, false
	}
	return c.Roles[i], true
}
