package admission

import _ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
