package team

import (
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

// joined tells the crew of an agent that begins.
func (w *work) joined(*roster.Member) { w.refresh("") }

// left tells the crew of an agent that has ended.
func (w *work) left(*roster.Member) { w.refresh("") }

func (w *work) refresh(string)                 {}
func (w *work) refreshDue()                    {}
func (w *work) refreshDeadline() int64         { return 0 }
func (w *work) manifest(*roster.Member) string { return "" }
