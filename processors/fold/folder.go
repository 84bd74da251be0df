package fold

import "github.com/go-json-experiment/json/jsontext"

// Folder folds a turn event by event. It copies what it keeps. It is not safe for concurrent use.
type Folder struct{ settings }

// NewFolder returns the fold of no events.
func NewFolder(opts ...Option) *Folder { return &Folder{} }

// Resume returns the folder that a snapshot was taken of. Options are not part of a snapshot.
func Resume(snapshot Log, opts ...Option) (*Folder, error) { return NewFolder(opts...), nil }

// Add folds the next event. With Strict, a malformed one is an error that wraps ErrMalformed and leaves the folder as it
// was; else Add never fails.
func (f *Folder) Add(e Event) error { return nil }

// AddLog folds the events that a log stands for. It fails with ErrLog for bytes that are none.
func (f *Folder) AddLog(l Log) error { return nil }

// Batch is the fold of the events so far. The folder goes on unchanged. It fails if the terminal result's stop reason is
// neither string nor null, and with Strict if the turn is paused at a malformed request.
func (f *Folder) Batch(end End) (Batch, error) { return Batch{}, nil }

// AssistantText is the text that the assistant wrote so far, without separators: the strings among the contents of the
// assistant's messages. With Strict it fails where Batch(End{}) does.
func (f *Folder) AssistantText() (string, error) { return "", nil }

// StopReason is that of the last done event; nil for none and for null.
func (f *Folder) StopReason() jsontext.Value { return nil }

// Size is how many bytes of text and payload the folder holds, and a fixed sum for each message.
func (f *Folder) Size() int { return 0 }

// Snapshot is the folder as a log: Resume gives its like, and further events can be appended to it.
func (f *Folder) Snapshot() Log { return nil }
