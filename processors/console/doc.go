// Package console is the web console of an agent: what waits for what, since when and until when; what is dead and why; what it
// costs; with the actions to decide, cancel, purge and requeue. It is one http.Handler.
//
//	tables of the turns, gates, deliveries --> index --+
//	dead-letter topics, spending -------------------> +--> pages, a stream of hints
//	topics of the turns, since an hour -----> spans --+
//
//	forms --> session-control, gate-decisions, delivery-control, dead letters and their marks
//
// It reads the committed records of all processes, keeps no store of its own, and has an index in memory: small entries for all
// sessions, and for what waits or failed. The rest of a row is read from the brokers when a page shows it. Each list says how much of it is
// shown, and each page what the console does not know: tables that are not read yet, brokers that do not answer, entries that do
// not fit into memory.
//
// # Pages
//
//	/             what needs a person: gates, overdue turns, dead deliveries and letters, groups that do not run or are behind
//	/sessions     all sessions; /session: what it waits for, the tree of its turns on a time axis, its conversation
//	/gates        what waits for a person; /gate: the request, the differences of an edit, the form of a decision
//	/deliveries   attempts, failures, breakers    /letters, /letter   dead letters, by reason
//	/processors   state, partitions and lag of the groups    /costs   users, tenants and tools    /crews   crews of coding agents
//
// Pages are HTML with forms and work without JavaScript. With it, one stream of server-sent events a browser says what has changed,
// and the page asks for itself again. A browser whose stream is refused polls.
//
// # Security
//
// See Config.Door for who may do what. Texts of people and tools are hidden until someone asks for them, and pass Config.Mask. They are never
// HTML. Nothing is loaded from other sites, and no script or style is inline (Content-Security-Policy). A form of a page of another
// origin is refused. Each action is a record with its subject: the By of a decision, or the header topics.HeaderBy. It is audited
// (auth.Door.Audit).
//
// A stale form changes little: a decision about a gate that has ended shows the outcome, and a cancellation names the request of the turn
// that the page has shown. A browser that sends a form twice purges once.
//
// # Limits
//
//   - A turn without a request ID cannot be named: if it ends before its cancellation is handled, a turn that is open then is cancelled.
//     The console says that a turn has ended also when it ended by itself.
//   - A purge deletes what the session has when the processor handles it, also what was added after the page was shown.
//   - Marks say that a letter was written back as long as the dead-letter topic keeps them. Letters that were deleted by age are listed
//     for a minute at most.
//   - Approvals for later calls of a tool in all sessions are not listed here and cannot be revoked here: see package gatehttp.
//   - The time axis reads the records of the turns whole, prompts among them, an hour and 20,000 records of a partition back.
//
// # Sizes
//
// See the limits of Config. README.md of this package has figures and pictures.
package console
