package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// prompt is the first prompt of an agent: what its role is, who else is in the crew, and what it has to do.
func (w *work) prompt(m *roster.Member, task, context string) string {
	role, _ := w.config.role(m.RoleId)
	text := manifest.Initial(w.Roster, m, role.Description, w.limit()) + "\n\n"
	if role.SystemPrompt != "" {
		text += role.SystemPrompt + "\n\n"
	}
	if task == "" {
		return text + "You are the " + m.RoleName + ". You are awaiting a task."
	}
	text += "You are the " + m.RoleName + ". Your task: " + task
	if context != "" {
		text += "\n\nContext: " + context
	}
	return text
}
