package settings

import (
	"path/filepath"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/projector/readmodel"
)

// readModelsFile is the file's name in the data directory.
const readModelsFile = "readmodels.db"

// ReadModelsPath is where a node keeps its read models.
func ReadModelsPath(c *config.Config) string {
	if c.ReadModels.File != "" {
		return c.ReadModels.File
	}
	return filepath.Join(c.DataDir, readModelsFile)
}

// Tenants are the limits of tenants, and the prices by which they spend money.
func Tenants(c *config.Config) quota.Tenants {
	t := c.Quota()
	t.Prices = Prices(c.Prices)
	return t
}

func Prices(prices map[string]config.Price) map[string]readmodel.Price {
	all := make(map[string]readmodel.Price, len(prices))
	for model, p := range prices {
		all[model] = readmodel.Price(p)
	}
	return all
}
