package turn

// WithOrderedOutputs acknowledges the outputs of a turn's step one after the other (default off): tool-use-all-complete, then
// the tool message, then enriched-message-input. Readers of several topics that show records in order of arrival, as
// FlightDeck's dashboard does, then see them in that order. It costs two more round trips to the brokers for each step with
// tools. Under exactly once, only readers of uncommitted records, the default of most clients, see that order: the outputs are
// committed together. Without the option, the timestamps of the outputs still have that order. See
// processors.Context.OrderOutputs.
func WithOrderedOutputs() Option {
	return func(o *options) { o.ordered = true }
}
