// Reads the list by each query with a client of orval (axios). See test_generators.py.

import axios from "axios";
import { listPayments } from "./generated";
import { base_url, key, readLists } from "./read_lists";

axios.defaults.baseURL = base_url;
axios.defaults.headers.common.Authorization = `Bearer ${key}`;

readLists(async (query) => (await listPayments(query)).data);
