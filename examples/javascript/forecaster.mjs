// The model: replace it by your own. It sees inputs and targets, and says where the target will stand 1 … H steps ahead.

const LAGS = 3; // past changes of a target that are features
const RIDGE = 1.0;

// Least squares that is updated with every label, one for each target and horizon.
export class Forecaster {
  // start: where the targets stand before the first row.
  constructor({ start, horizon }) {
    this.horizon = horizon;
    this.targets = start;
    this.changes = start.map(() => new Array(LAGS).fill(0));
    this.models = start.map(() => Array.from({ length: horizon }, () => null));
    this.rows = []; // the last rows: features and where the targets stood
  }

  // forecasts[target][step ahead] from the present input, in which NaN stands for a missing number.
  forecast(x) {
    const inputs = x.map((number) => (Number.isFinite(number) ? number : 0));
    const features = this.changes.map((changes) => [1, ...changes, ...inputs]);
    this.row = { features, targets: this.targets };
    return features.map((z, i) => this.models[i].map((model) => this.targets[i] + (model ? dot(model.weights, z) : 0)));
  }

  // The row is over.   known: whether `targets` are labels, or stand in for labels that did not come.
  learn(targets, known) {
    if (this.row) this.rows.unshift(this.row);
    this.row = null;
    this.rows.length = Math.min(this.rows.length, this.horizon);
    if (known)
      this.rows.forEach(({ features, targets: before }, ahead) =>
        targets.forEach((target, i) => {
          const model = (this.models[i][ahead] ??= new LeastSquares(features[i].length));
          model.learn(features[i], target - before[i]);
        }),
      );
    this.changes = this.changes.map((changes, i) => [targets[i] - this.targets[i], ...changes].slice(0, LAGS));
    this.targets = targets;
  }
}

class LeastSquares {
  constructor(size) {
    this.weights = new Array(size).fill(0);
    this.inverse = this.weights.map((_, i) => this.weights.map((_, j) => (i === j ? 1 / RIDGE : 0)));
  }

  learn(z, label) {
    const gain = this.inverse.map((row) => dot(row, z));
    const scale = 1 + dot(gain, z);
    const error = label - dot(this.weights, z);
    this.weights = this.weights.map((weight, i) => weight + (gain[i] * error) / scale);
    this.inverse = this.inverse.map((row, i) => row.map((value, j) => value - (gain[i] * gain[j]) / scale));
  }
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
