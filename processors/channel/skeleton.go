package channel

func (t *transition) called(Called)           {}
func (t *transition) cancelled(Called)        {}
func (t *transition) replied(Replied)         {}
func (t *transition) returned(OutputArrived)  {}
func (t *transition) announced(OutputArrived) {}
func (t *transition) purged(Controlled)       {}
func (t *transition) peerReplied(PeerReplied) {}
func (t *transition) due()                    {}
func (t *transition) deadline() int64         { return 0 }
func (t *transition) forgetEnded() bool       { return false }
func (t *transition) shorten() bool           { return false }
