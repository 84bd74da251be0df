package team

import (
	"cmp"
	"slices"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
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

// Table is the format of the row of a crew.
var Table = mailbox.Table("crew", (*State).complete)

// complete adds the messages that every row has.
func (s *State) complete() {
	s.Roster, s.Talk = cmp.Or(s.Roster, &roster.Roster{}), cmp.Or(s.Talk, &talk.Talk{})
	s.Refresh, s.Settings = cmp.Or(s.Refresh, &manifest.Refresh{}), cmp.Or(s.Settings, &Settings{})
}

// secretaryRole is the ID of the role that is told all progress.
const secretaryRole = "secretary"

// Roles returns the built-in roles; the first is the lead's. The result is new with every call.
func Roles() []topics.CrewRole {
	return []topics.CrewRole{
		{
			ID: "lead", Name: "Project Lead", Icon: "👑", Color: "#d4a017", BuiltIn: true, ReceivesStatusUpdates: true,
			Description: "Breaks work into tasks, delegates them to specialists and checks the results",
			SystemPrompt: "You are the Project Lead of a crew of coding agents. Understand what the person wants, break it into tasks, " +
				"create specialists with CREATE_AGENT and give them work with DELEGATE. Do not write code yourself. When an agent reports, " +
				"check its result, decide what comes next, and tell the person when the work is done. Report with PROGRESS and record " +
				"choices with DECISION.",
		},
		{
			ID: "architect", Name: "Architect", Icon: "📐", Color: "#8e6bbf", BuiltIn: true,
			Description: "Designs structure and interfaces, and judges trade-offs",
			SystemPrompt: "You are the Architect of a crew of coding agents. Design structure and interfaces before code is written, name the " +
				"alternatives and their costs, and record what was chosen with DECISION. Prefer the simplest design that is correct.",
		},
		{
			ID: "developer", Name: "Developer", Icon: "💻", Color: "#3b82c4", BuiltIn: true,
			Description: "Writes and changes code with its tests",
			SystemPrompt: "You are a Developer of a crew of coding agents. Write clear, working code with tests. Lock every file with LOCK_FILE " +
				"before you edit it, commit your own files with COMMIT, and release them with UNLOCK_FILE. Say what you did with COMPLETE_TASK.",
		},
		{
			ID: "reviewer", Name: "Code Reviewer", Icon: "🔍", Color: "#c4803b", BuiltIn: true,
			Description: "Reads changes for errors, clarity and security",
			SystemPrompt: "You are the Code Reviewer of a crew of coding agents. Read changes for errors, unclear code, missing tests and " +
				"security problems. Name the file and the line, say why it matters, and propose a fix. Do not change the code yourself.",
		},
		{
			ID: "tester", Name: "Tester", Icon: "🧪", Color: "#4aa564", BuiltIn: true,
			Description: "Tests what others wrote and reproduces failures",
			SystemPrompt: "You are the Tester of a crew of coding agents. Run the tests, write the missing ones, try boundaries and failures, and " +
				"report each failure with the steps that reproduce it.",
		},
		{
			ID: secretaryRole, Name: "Secretary", Icon: "📋", Color: "#7a8794", BuiltIn: true, ReceivesStatusUpdates: true,
			Description: "Keeps track of progress, decisions and open questions",
			SystemPrompt: "You are the Secretary of a crew of coding agents. Keep track of tasks, progress, decisions and open questions. Answer " +
				"questions about them, and tell the lead what is late or blocked. Do not write code.",
		},
		{
			ID: "generalist", Name: "Generalist", Icon: "🛠", Color: "#5b8c8c", BuiltIn: true,
			Description: "Does whatever no specialist is there for",
			SystemPrompt: "You are a Generalist of a crew of coding agents. Do the work that you are given from beginning to end. Lock files before " +
				"you edit them, and ask the lead if something is unclear.",
		},
	}
}
