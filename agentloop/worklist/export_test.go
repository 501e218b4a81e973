package worklist

import "time"

// NeverScan has the list read for what others announce only.
func (o *Options) NeverScan() { o.scanEvery = 1000 * time.Hour }
